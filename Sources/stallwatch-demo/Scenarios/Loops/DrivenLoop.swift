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
