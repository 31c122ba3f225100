import CDemo
import CoreFoundation
import Foundation
import Glibc

/// A run loop of any thread, in one of its modes, as scenarios use it.
///
/// For each kind of callout, a function makes the loop call `work` and returns how long the call took on the loop's thread.
/// Call these functions on other threads.
///
/// `@unchecked Sendable`: the functions of CFRunLoop that it calls take the loop's own lock.
struct DrivenLoop: @unchecked Sendable {
    typealias Work = @Sendable () -> Void

    let runLoop: CFRunLoop
    var mode: CFRunLoopMode

    /// The main thread's loop, in its common modes.
    static let main = DrivenLoop(CFRunLoopGetMain())

    /// A loop in its common modes.
    init(_ runLoop: CFRunLoop) {
        self.runLoop = runLoop
        mode = kCFRunLoopCommonModes
    }

    /// Returns the same loop in another mode.
    func inMode(_ name: String) -> DrivenLoop {
        var loop = self
        loop.mode = Self.mode(name)
        return loop
    }

    /// Makes a CFString from characters, because on Linux neither a Foundation string nor a bridged one is a CFString.
    static func mode(_ name: String) -> CFRunLoopMode {
        CFStringCreateWithCString(nil, name, CFStringBuiltInEncodings.UTF8.rawValue)
    }

    /// A CFRunLoopTimer calls `work`.
    func timer(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in
                continuation.resume(returning: Self.time(work))
            }
            CFRunLoopAddTimer(runLoop, timer, mode)
        }
    }

    /// A source of version 0 calls `work`.
    func source0(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            let source = Source0(on: runLoop, mode: mode) { source in
                let duration = Self.time(work)
                source.invalidate()
                continuation.resume(returning: duration)
            }
            source.signal()
        }
    }

    /// A source of version 1 calls `work`: one that the kernel signals.
    func source1(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            let source = Source1(on: runLoop, mode: mode) { source in
                let duration = Self.time(work)
                source.invalidate()
                continuation.resume(returning: duration)
            }
            source.signal()
        }
    }

    /// The loop performs `work` as a block.
    func block(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            perform { continuation.resume(returning: Self.time(work)) }
        }
    }

    /// An observer of `activity` calls `work`, once.
    func observer(of activity: CFRunLoopActivity, _ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            let observer = CFRunLoopObserverCreateWithHandler(nil, activity.rawValue, false, 0) { _, _ in
                continuation.resume(returning: Self.time(work))
            }
            CFRunLoopAddObserver(runLoop, observer, mode)
            // Makes the loop turn, so that the activity occurs.
            perform {}
        }
    }

    /// Makes the loop run `block` soon.
    func perform(_ block: @escaping Work) {
        CFRunLoopPerformBlock(runLoop, mode, block)
        CFRunLoopWakeUp(runLoop)
    }

    /// Measures with the monotonic clock, as the monitor does.
    static func time(_ work: Work) -> Duration {
        SuspendingClock().measure(work)
    }
}

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
