import CoreFoundation

/// A run loop source of version 0: one that the app itself signals.
///
/// `@unchecked Sendable`: the functions of CFRunLoopSource that are called here take the source's own lock; `source` and
/// `perform` are written before the object is shared, and after that only by ``invalidate()`` on the loop's
/// thread.
final class Source0: @unchecked Sendable {
    private let runLoop: CFRunLoop
    private var source: CFRunLoopSource?
    private var perform: (@Sendable (Source0) -> Void)?

    /// A source that calls `perform` on the loop's thread once for each time that it finds itself signalled.
    init(
        on runLoop: CFRunLoop = CFRunLoopGetMain(), mode: CFRunLoopMode = kCFRunLoopCommonModes,
        perform: @escaping @Sendable (Source0) -> Void
    ) {
        self.runLoop = runLoop
        self.perform = perform
        var context = CFRunLoopSourceContext(
            version: 0,
            info: Unmanaged.passUnretained(self).toOpaque(),
            // The CFRunLoopSource keeps this object, and this object it: `invalidate` takes the ring apart.
            retain: { info in
                guard let info else { return nil }
                return UnsafeRawPointer(Unmanaged<Source0>.fromOpaque(info).retain().toOpaque())
            },
            release: { info in
                guard let info else { return }
                Unmanaged<Source0>.fromOpaque(info).release()
            },
            copyDescription: nil, equal: nil, hash: nil, schedule: nil, cancel: nil,
            perform: { info in
                guard let info else { return }
                let source = Unmanaged<Source0>.fromOpaque(info).takeUnretainedValue()
                source.perform?(source)
            }
        )
        source = CFRunLoopSourceCreate(nil, 0, &context)
        CFRunLoopAddSource(runLoop, source, mode)
    }

    /// Has the loop call out in its next turn.
    func signal() {
        CFRunLoopSourceSignal(source)
        CFRunLoopWakeUp(runLoop)
    }

    /// Has the loop look after the source in one more mode.
    func add(to loop: DrivenLoop) {
        CFRunLoopAddSource(loop.runLoop, source, loop.mode)
    }

    /// Takes the source off the loop for good.
    ///
    /// To be called on the loop's thread.
    func invalidate() {
        CFRunLoopSourceInvalidate(source)
        source = nil
        perform = nil
    }
}
