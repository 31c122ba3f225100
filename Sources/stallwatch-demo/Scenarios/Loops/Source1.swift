import CDemo
import CoreFoundation
import Glibc

/// A run loop source of version 1: one that the kernel signals, through a file descriptor.
///
/// On Linux a CFRunLoop's port is a file descriptor.
///
/// `@unchecked Sendable`: like `Source0`.
final class Source1: @unchecked Sendable {
    private let descriptor = demo_open_event()
    private var source: CFRunLoopSource?
    private var perform: (@Sendable (Source1) -> Void)?

    /// A source that calls `perform` on the loop's thread once it has been signalled.
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
            // The version says which of the two contexts it is (CFRunLoopSourceCreate).
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
        CFRunLoopAddSource(runLoop, source, mode)
    }

    deinit {
        close(descriptor)
    }

    /// Has the loop call out.
    func signal() {
        demo_signal_event(descriptor)
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
