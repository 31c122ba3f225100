import CoreFoundation
import Foundation
import Glibc

/// A run loop of any thread, in one of its modes, as scenarios use it.
///
/// Each kind of callout has a function that lets the loop call `work` that way, and returns how long the call took on the
/// loop's thread. To be called from any other thread.
///
/// `@unchecked Sendable`: the functions of CFRunLoop that are called here take the loop's own lock.
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

    /// The same loop in the mode of that name.
    func inMode(_ name: String) -> DrivenLoop {
        var loop = self
        loop.mode = Self.mode(name)
        return loop
    }

    /// Neither a Foundation string nor a bridged one is a CFString on Linux, so it is made from characters.
    static func mode(_ name: String) -> CFRunLoopMode {
        CFStringCreateWithCString(nil, name, CFStringBuiltInEncodings.UTF8.rawValue)
    }

    /// `work` is called by a CFRunLoopTimer.
    func timer(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in
                continuation.resume(returning: Self.time(work))
            }
            CFRunLoopAddTimer(runLoop, timer, mode)
        }
    }

    /// `work` is called by a source of version 0.
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

    /// `work` is called by a source of version 1: one that the kernel signals.
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

    /// `work` is a block that the loop performs.
    func block(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            perform { continuation.resume(returning: Self.time(work)) }
        }
    }

    /// `work` is called by an observer of `activity`, once.
    func observer(of activity: CFRunLoopActivity, _ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            let observer = CFRunLoopObserverCreateWithHandler(nil, activity.rawValue, false, 0) { _, _ in
                continuation.resume(returning: Self.time(work))
            }
            CFRunLoopAddObserver(runLoop, observer, mode)
            // A turn, so that the activity comes.
            perform {}
        }
    }

    /// Lets the loop run `block` soon.
    func perform(_ block: @escaping Work) {
        CFRunLoopPerformBlock(runLoop, mode, block)
        CFRunLoopWakeUp(runLoop)
    }

    /// By the monotonic clock, which is the monitor's.
    static func time(_ work: Work) -> Duration {
        SuspendingClock().measure(work)
    }
}
