import CStalls
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
    var mode: CFRunLoopMode = kCFRunLoopCommonModes

    /// The main thread's loop, in its common modes.
    static let main = DrivenLoop(runLoop: CFRunLoopGetMain())

    func inMode(_ name: String) -> DrivenLoop { DrivenLoop(runLoop: runLoop, mode: Self.mode(name)) }

    /// Makes a CFString from characters, because on Linux neither a Foundation string nor a bridged one is a CFString.
    static func mode(_ name: String) -> CFRunLoopMode {
        CFStringCreateWithCString(nil, name, CFStringBuiltInEncodings.UTF8.rawValue)
    }

    func timer(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in
                continuation.resume(returning: Self.time(work))
            }
            CFRunLoopAddTimer(runLoop, timer, mode)
        }
    }

    func source0(_ work: @escaping Work) async -> Duration {
        await once(work) { Source0(on: runLoop, mode: mode, perform: $0) }
    }

    /// A source of version 1 calls `work`: one that the kernel signals.
    func source1(_ work: @escaping Work) async -> Duration {
        await once(work) { Source1(on: runLoop, mode: mode, perform: $0) }
    }

    private func once(
        _ work: @escaping Work, _ make: (@escaping @Sendable (LoopSource) -> Void) -> LoopSource
    ) async -> Duration {
        await withCheckedContinuation { continuation in
            make { source in
                let duration = Self.time(work)
                source.invalidate()
                continuation.resume(returning: duration)
            }.signal()
        }
    }

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

    func perform(_ block: @escaping Work) {
        // It does not wake the loop.
        CFRunLoopPerformBlock(runLoop, mode, block)
        CFRunLoopWakeUp(runLoop)
    }

    /// Measures with the monotonic clock, as the monitor does.
    static func time(_ work: Work) -> Duration {
        SuspendingClock().measure(work)
    }
}

/// A run loop source of one version or the other, which calls a closure on the loop's thread.
///
/// `@unchecked Sendable`: the functions of CFRunLoopSource that it calls take the source's own lock. `source` and `perform`
/// are written before the object is shared, and later only by ``invalidate()`` on the loop's thread.
class LoopSource: @unchecked Sendable {
    fileprivate var source: CFRunLoopSource?
    private var perform: (@Sendable (LoopSource) -> Void)?

    fileprivate init(perform: @escaping @Sendable (LoopSource) -> Void) { self.perform = perform }

    /// Makes the loop call the closure in its next turn.
    func signal() {}

    func add(to loop: DrivenLoop) { CFRunLoopAddSource(loop.runLoop, source, loop.mode) }

    /// Removes the source from the loop for good, on the loop's thread.
    func invalidate() {
        CFRunLoopSourceInvalidate(source)
        source = nil
        perform = nil
    }

    fileprivate var info: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    // This object and the CFRunLoopSource retain each other. `invalidate` breaks the cycle.

    fileprivate static func retain(_ info: UnsafeRawPointer?) -> UnsafeRawPointer? {
        info.map { UnsafeRawPointer(Unmanaged<LoopSource>.fromOpaque($0).retain().toOpaque()) }
    }

    fileprivate static func release(_ info: UnsafeRawPointer?) {
        if let info { Unmanaged<LoopSource>.fromOpaque(info).release() }
    }

    fileprivate static func perform(_ info: UnsafeRawPointer?) {
        guard let info else { return }
        let source = Unmanaged<LoopSource>.fromOpaque(info).takeUnretainedValue()
        source.perform?(source)
    }
}

/// A run loop source of version 0: one that the app itself signals, as often as it likes for one call.
final class Source0: LoopSource, @unchecked Sendable {
    private let runLoop: CFRunLoop

    init(
        on runLoop: CFRunLoop = CFRunLoopGetMain(), mode: CFRunLoopMode = kCFRunLoopCommonModes,
        perform: @escaping @Sendable (LoopSource) -> Void
    ) {
        self.runLoop = runLoop
        super.init(perform: perform)
        var context = CFRunLoopSourceContext(
            version: 0, info: info, retain: { LoopSource.retain($0) }, release: { LoopSource.release($0) },
            copyDescription: nil, equal: nil, hash: nil, schedule: nil, cancel: nil,
            perform: { LoopSource.perform($0) })
        source = CFRunLoopSourceCreate(nil, 0, &context)
        CFRunLoopAddSource(runLoop, source, mode)
    }

    override func signal() {
        signalWithoutWaking()
        CFRunLoopWakeUp(runLoop)
    }

    /// Marks the source as signaled, which a loop that sleeps does not see.
    func signalWithoutWaking() { CFRunLoopSourceSignal(source) }
}

/// A run loop source of version 1, which the kernel signals: on Linux its port is a file descriptor.
final class Source1: LoopSource, @unchecked Sendable {
    private let descriptor = stalls_open_event()

    init(on runLoop: CFRunLoop, mode: CFRunLoopMode, perform: @escaping @Sendable (LoopSource) -> Void) {
        super.init(perform: perform)
        var context = CFRunLoopSourceContext1(
            version: 1, info: info, retain: { LoopSource.retain($0) }, release: { LoopSource.release($0) },
            copyDescription: nil, equal: nil, hash: nil,
            getPort: { $0.map { Unmanaged<Source1>.fromOpaque($0).takeUnretainedValue().descriptor } ?? -1 },
            perform: { LoopSource.perform($0) })
        source = withUnsafeMutablePointer(to: &context) { context in
            // CFRunLoopSourceCreate reads the version first and then takes the context for one of version 1.
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
        CFRunLoopAddSource(runLoop, source, mode)
    }

    deinit { close(descriptor) }

    override func signal() { stalls_signal_event(descriptor) }
}
