import CDemo
import CoreFoundation
import Glibc

/// A run loop source of version 1: one that the kernel signals.
///
/// On Linux its port is a file descriptor.
///
/// `@unchecked Sendable`: for the same reasons as ``Source0``.
final class Source1: @unchecked Sendable {
    private let descriptor = demo_open_event()
    private var source: CFRunLoopSource?
    private var perform: (@Sendable (Source1) -> Void)?

    /// A source that calls `perform` on the loop's thread after a signal.
    init(on runLoop: CFRunLoop, mode: CFRunLoopMode, perform: @escaping @Sendable (Source1) -> Void) {
        self.perform = perform
        var context = CFRunLoopSourceContext1(
            version: 1,
            info: Unmanaged.passUnretained(self).toOpaque(),
            retain: { info in
                guard let info else { return nil }
                return UnsafeRawPointer(Unmanaged<Source1>.fromOpaque(info).retain().toOpaque())
            },
            release: { info in
                guard let info else { return }
                Unmanaged<Source1>.fromOpaque(info).release()
            },
            copyDescription: nil, equal: nil, hash: nil,
            getPort: { info in
                guard let info else { return -1 }
                return Unmanaged<Source1>.fromOpaque(info).takeUnretainedValue().descriptor
            },
            perform: { info in
                guard let info else { return }
                let source = Unmanaged<Source1>.fromOpaque(info).takeUnretainedValue()
                source.perform?(source)
            }
        )
        source = withUnsafeMutablePointer(to: &context) { context in
            // CFRunLoopSourceCreate reads the version first and then takes the context for one of version 1.
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
        CFRunLoopAddSource(runLoop, source, mode)
    }

    deinit {
        close(descriptor)
    }

    /// Makes the loop call `perform`.
    func signal() {
        demo_signal_event(descriptor)
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
