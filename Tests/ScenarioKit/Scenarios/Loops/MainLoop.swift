import CoreFoundation
import Dispatch
import Foundation
import LinuxSupport
import Synchronization

/// The main thread's run loop, as scenarios use it.
///
/// For each kind of callout, a function makes the loop call `work` and returns how long the call took on the main thread.
/// Call these functions on other threads.
enum MainLoop {
    typealias Work = DrivenLoop.Work

    /// Several kinds of callout, for scenarios that use them in turn.
    static let callouts: [@Sendable (@escaping Work) async -> Duration] = [
        timer, DrivenLoop.main.source0, mainQueue, DrivenLoop.main.block,
    ]

    static func timer(_ work: @escaping Work) async -> Duration {
        // Foundation's `Timer` keeps its block even after it has fired.
        let once = OneShotTransfer(work)
        return await withCheckedContinuation { continuation in
            let timer = Timer(timeInterval: 0, repeats: false) { _ in
                continuation.resume(returning: DrivenLoop.time { once.take()?() })
            }
            RunLoop.main.add(timer, forMode: .common)
        }
    }

    static func mainQueue(_ work: @escaping Work) async -> Duration {
        await DispatchQueue.main.time(work)
    }

    /// Calls `work` in so many callouts, of each kind in turn, with a pause after each; returns how long each call took.
    static func callInTurn(
        _ count: Int, pausing: Duration = .milliseconds(20), _ work: @escaping Work
    ) async -> [Duration] {
        var durations: [Duration] = []
        for index in 0..<count {
            durations.append(await callouts[index % callouts.count](work))
            // The loop has to wait in between: two of these in one turn would be one stall.
            await pause(pausing)
        }
        return durations
    }

    /// Calls `start` in a callout, and returns once `start`'s argument has been called and the loop has heard of it.
    static func untilDone(_ start: @escaping @Sendable (_ done: @escaping Work) -> Void) async {
        let (ends, end) = AsyncStream<Void>.makeStream()
        _ = await timer { start { DispatchQueue.main.async { end.finish() } } }
        for await _ in ends {}
    }

    /// Makes the loop turn `count` times for a source of version 0 that signals itself.
    static func source0Turns(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let left = Atomic(count)
            Source0 { source in
                guard left.subtract(1, ordering: .relaxed).newValue > 0 else {
                    source.invalidate()
                    return continuation.resume()
                }
                source.signal()
            }.signal()
        }
    }

    /// Runs the main run loop on the main thread while `operation` runs on others.
    static func run<Success: Sendable>(
        while operation: @escaping @Sendable () async throws(ScenariosFailure) -> Success
    ) throws(ScenariosFailure) -> Success {
        let outcome = Mutex<Result<Success, ScenariosFailure>?>(nil)
        Task.detached {
            let result: Result<Success, ScenariosFailure>
            do throws(ScenariosFailure) {
                result = .success(try await operation())
            } catch {
                result = .failure(error)
            }
            outcome.withLock { $0 = result }
            // Stopped from inside the loop, because a stop before the loop runs has no effect.
            DrivenLoop.main.perform { CFRunLoopStop(CFRunLoopGetMain()) }
        }
        while true {
            if let result = outcome.withLock({ $0 }) { return try result.get() }
            // Not RunLoop.run(): it leaves and enters the loop again for every source, and so separates turns that have no wait
            // in between.
            CFRunLoopRun()
        }
    }
}
