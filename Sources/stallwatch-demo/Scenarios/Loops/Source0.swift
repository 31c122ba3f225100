import CoreFoundation

/// A run loop source of version 0: one that the app itself signals.
///
/// `@unchecked Sendable`: the functions of CFRunLoopSource that it calls take the source's own lock. `source` and `perform`
/// are written before the object is shared, and later only by ``invalidate()`` on the loop's thread.
final class Source0: @unchecked Sendable {
    private let runLoop: CFRunLoop
    private var source: CFRunLoopSource?
    private var perform: (@Sendable (Source0) -> Void)?

    /// A source that calls `perform` on the loop's thread.
    ///
    /// Several signals before a turn cause one call.
    init(
        on runLoop: CFRunLoop = CFRunLoopGetMain(), mode: CFRunLoopMode = kCFRunLoopCommonModes,
        perform: @escaping @Sendable (Source0) -> Void
    ) {
        self.runLoop = runLoop
        self.perform = perform
        var context = CFRunLoopSourceContext(
            version: 0,
            info: Unmanaged.passUnretained(self).toOpaque(),
            // This object and the CFRunLoopSource retain each other. `invalidate` breaks the cycle.
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

    /// Makes the loop call `perform` in its next turn.
    func signal() {
        CFRunLoopSourceSignal(source)
        CFRunLoopWakeUp(runLoop)
    }

    /// Adds the source to one more mode.
    func add(to loop: DrivenLoop) {
        CFRunLoopAddSource(loop.runLoop, source, loop.mode)
    }

    /// Removes the source from the loop for good.
    ///
    /// Call it on the loop's thread.
    func invalidate() {
        CFRunLoopSourceInvalidate(source)
        source = nil
        perform = nil
    }
}
