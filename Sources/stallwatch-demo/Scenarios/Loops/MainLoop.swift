import CoreFoundation
import Dispatch
import Foundation
import Synchronization

/// The main thread's run loop, as scenarios use it.
///
/// Each kind of callout has a function that lets the loop call `work` that way, and returns how long the call took on the
/// main thread. To be called from any other thread.
enum MainLoop {
    typealias Work = @Sendable () -> Void

    /// One after another, for scenarios to which the kind of callout is all the same.
    static let callouts: [@Sendable (@escaping Work) async -> Duration] = [timer, source0, mainQueue, performedBlock]

    /// `work` is called by a Foundation timer.
    static func timer(_ work: @escaping Work) async -> Duration {
        let once = WorkOnce(work)
        return await withCheckedContinuation { continuation in
            let timer = Timer(timeInterval: 0, repeats: false) { _ in
                continuation.resume(returning: time { once.run() })
            }
            add(timer)
        }
    }

    /// `work` is called by a source of version 0.
    static func source0(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            let source = Source0 { source in
                let duration = time(work)
                source.invalidate()
                continuation.resume(returning: duration)
            }
            source.signal()
        }
    }

    /// `work` is a block on the main dispatch queue.
    static func mainQueue(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            DispatchQueue.main.async { continuation.resume(returning: time(work)) }
        }
    }

    /// `work` is a block that the loop performs.
    static func performedBlock(_ work: @escaping Work) async -> Duration {
        await withCheckedContinuation { continuation in
            perform { continuation.resume(returning: time(work)) }
        }
    }

    /// Lets a source of version 0 signal itself until the loop has turned `count` times for it.
    static func source0Turns(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let left = Atomic(count)
            let source = Source0 { source in
                guard left.subtract(1, ordering: .relaxed).newValue > 0 else {
                    source.invalidate()
                    return continuation.resume()
                }
                source.signal()
            }
            source.signal()
        }
    }

    /// Lets a timer fire every `interval` until `duration` has passed.
    static func repeatingTimer(every interval: Duration, for duration: Duration) async {
        let end = ContinuousClock.now + duration
        await withCheckedContinuation { continuation in
            let timer = Timer(timeInterval: interval.seconds, repeats: true) { timer in
                guard ContinuousClock.now >= end else { return }
                timer.invalidate()
                continuation.resume()
            }
            add(timer)
        }
    }

    private static func add(_ timer: Timer) {
        RunLoop.main.add(timer, forMode: .common)
    }

    private static func perform(_ block: @escaping Work) {
        RunLoop.main.perform(inModes: [.common], block: block)
        // Neither Foundation nor CoreFoundation wakes the loop for a block.
        CFRunLoopWakeUp(CFRunLoopGetMain())
    }

    /// By the monotonic clock, which is the monitor's.
    private static func time(_ work: Work) -> Duration {
        SuspendingClock().measure(work)
    }
}

extension MainLoop {
    /// Runs the main run loop for as long as `operation` takes, which runs on other threads.
    ///
    /// To be called on the main thread.
    static func run<Success: Sendable>(
        while operation: @escaping @Sendable () async throws(DemoFailure) -> Success
    ) throws(DemoFailure) -> Success {
        let box = ResultBox<Success>()
        Task.detached {
            let result: Result<Success, DemoFailure>
            do throws(DemoFailure) {
                result = .success(try await operation())
            } catch {
                result = .failure(error)
            }
            box.result.withLock { $0 = result }
            // From inside the loop, where it cannot come too early.
            perform { CFRunLoopStop(CFRunLoopGetMain()) }
        }
        while true {
            if let result = box.result.withLock({ $0 }) { return try result.get() }
            // Entered once and for all: unlike RunLoop.run(), which leaves the loop and enters it again for every source that
            // it handles, so that turns without a wait in between are told apart by nothing but their sources.
            CFRunLoopRun()
        }
    }
}

/// Where one thread leaves a result for another.
private final class ResultBox<Success: Sendable>: Sendable {
    let result = Mutex<Result<Success, DemoFailure>?>(nil)
}

/// Work that is let go when it has been done: Foundation's `Timer` keeps its block for ever, also once it has fired.
private final class WorkOnce: Sendable {
    private let work: Mutex<MainLoop.Work?>

    init(_ work: @escaping MainLoop.Work) {
        self.work = Mutex(work)
    }

    func run() {
        let work = work.withLock { work in
            defer { work = nil }
            return work
        }
        work?()
    }
}
