import CoreFoundation
import Dispatch
import Foundation
import StallWatch

extension Scenario {
    /// Loops that are busy all the time although no turn is long, and healthy ones that look alike.
    static let busyScenarios: [Scenario] = [
        .stalling(
            "saturated-by-tasks", "40 main-actor tasks take turns, and the loop waits in between", times: 6,
            ExpectedReport(kind: .saturation, loop: "busy", callout: .mainQueue, function: "spinTheCPU(for:)")
        ) { context in
            try await context.watch(.runLoop(.main, label: "busy"), saturationThreshold: context.threshold * 2)
            let begin = SuspendingClock.now
            await withTaskGroup { group in
                for _ in 0..<40 { group.addTask { await takeTurns(until: begin + context.stall) } }
            }
            return SuspendingClock.now - begin
        },
        .stalling(
            "spinning-descriptor", "a readable pipe is not read: its handler returns at once", times: 16,
            ExpectedReport(kind: .spinning, differingSamples: true)
        ) { context in
            let pipe = BytePipe()
            pipe.writeOne()
            let source = DispatchSource.makeReadSource(fileDescriptor: pipe.readEnd, queue: .main)
            source.setEventHandler {}
            let begin = SuspendingClock.now
            source.resume()
            await pause(context.spin)
            source.cancel()
            _ = await MainLoop.mainQueue {}
            return SuspendingClock.now - begin
        },
        .stalling(
            "spinning-block", "a main-queue block submits itself again and does nothing else", times: 16,
            ExpectedReport(kind: .spinning, callout: .mainQueue, differingSamples: true)
        ) { context in
            await DispatchQueue.main.chain(for: context.spin) {}
        },
        .stalling(
            "spinning-empty-mode", "a thread runs its loop in a mode without sources", times: 16,
            ExpectedReport(kind: .spinning, loop: "empty", function: "runTheEmptyMode(_:for:)")
        ) { context in
            try await spin(context, in: "empty")
        },
        .stalling(
            "spinning-common-modes", "a thread runs its loop in the common modes, which are no mode", times: 16,
            ExpectedReport(kind: .spinning, loop: "empty", function: "runTheEmptyMode(_:for:)")
        ) { context in
            try await spin(context, in: RunLoop.Mode.common.rawValue)
        },
        .stalling(
            "spinning-observed-mode", "a thread runs its loop in a mode that has only an observer", times: 16,
            ExpectedReport(kind: .spinning, loop: "empty", function: "runTheEmptyMode(_:for:)")
        ) { context in
            try await spin(context, in: "observed") { loop in
                let observer = CFRunLoopObserverCreateWithHandler(
                    nil, CFRunLoopActivity.allActivities.rawValue, true, 0
                ) { _, _ in }
                CFRunLoopAddObserver(loop.runLoop, observer, DrivenLoop.mode("observed"))
            }
        },
        .quiet("game-loop", "60 turns a second, and the thread computes in between") { context in
            try await quiet(context, computing: .microseconds(16_600))
        },
        .quiet("outside-computes", "a thread computes outside its loop") { context in
            try await quiet(context, computing: .seconds(4))
        },
        .quiet("busy-below-share", "main-queue blocks compute for nine tenths of the time") { context in
            try await context.watch(.runLoop(.main, label: "busy"), saturationThreshold: context.threshold * 2)
            let end = ContinuousClock.now + .seconds(4)
            while ContinuousClock.now < end {
                _ = await MainLoop.mainQueue { spinTheCPU(for: .milliseconds(9)) }
                await pause(.milliseconds(1))
            }
        },
        .quiet("busy-turns", "10,000 turns a second, each of which works") { _ in
            _ = await DispatchQueue.main.chain(for: .seconds(4)) { spinTheCPU(for: .microseconds(90)) }
        },
        .quiet("busy-descriptor", "a pipe is filled and read as fast as possible") { _ in
            let pipe = BytePipe()
            pipe.writeOne()
            let source = DispatchSource.makeReadSource(fileDescriptor: pipe.readEnd, queue: .main)
            source.setEventHandler { pipe.readOne() }
            source.resume()
            await pipe.fill(for: .seconds(4))
            source.cancel()
            _ = await MainLoop.mainQueue {}
        },
        .quiet("modal-dialog", "a timer runs the loop in a mode of its own, which waits") { context in
            try await context.watch(.runLoop(.main, label: "busy"), saturationThreshold: context.threshold * 2)
            _ = await MainLoop.timer {
                let source = Source0(mode: DrivenLoop.mode("dialog")) { _ in }
                CFRunLoopRunInMode(DrivenLoop.mode("dialog"), (context.threshold * 6).seconds, false)
                source.invalidate()
            }
            await pause(context.threshold * 2)
        },
    ]

    /// Runs a thread's loop in its default mode, and then again and again in a mode without timers and sources.
    private static func spin(
        _ context: ScenarioContext, in mode: String, _ prepare: @escaping @Sendable (DrivenLoop) -> Void = { _ in }
    ) async throws -> Duration {
        let injected = DurationBox()
        let style: LoopThread.Style = { thread in
            prepare(thread.driven)
            CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.3, false)
            injected.measure { runTheEmptyMode(RunLoop.Mode(mode), for: context.spin) }
            while !thread.isStopping { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, true) }
        }
        try await context.withLoop("empty", style) { _ in await pause(context.spin + .seconds(1)) }
        return injected.value
    }

    /// Runs a loop for 5 s that computes between its turns, with a saturation threshold of two thresholds.
    private static func quiet(_ context: ScenarioContext, computing duration: Duration) async throws {
        let style: LoopThread.Style = { thread in
            while !thread.isStopping {
                CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true)
                spinTheCPU(for: duration)
            }
        }
        try await context.withLoop("busy", style, saturationThreshold: context.threshold * 2) { _ in
            await pause(.seconds(5))
        }
    }
}

/// Computes on the main actor for 2 ms at a time.
@MainActor
private func takeTurns(until end: SuspendingClock.Instant) async {
    while SuspendingClock.now < end {
        spinTheCPU(for: .milliseconds(2))
        await Task.yield()
    }
}

@inline(never)
private func runTheEmptyMode(_ mode: RunLoop.Mode, for duration: Duration) {
    let end = SuspendingClock.now + duration
    while SuspendingClock.now < end {
        _ = RunLoop.current.run(mode: mode, before: Date(timeIntervalSinceNow: 1))
    }
    errno = 0
}

extension DispatchQueue {
    /// Submits a block that does `work` and submits itself again, for `duration`; returns how long it did.
    fileprivate func chain(for duration: Duration, _ work: @escaping @Sendable () -> Void) async -> Duration {
        let begin = SuspendingClock.now
        return await withCheckedContinuation { continuation in
            @Sendable func turn() {
                work()
                if SuspendingClock.now - begin < duration { return self.async(execute: turn) }
                continuation.resume(returning: SuspendingClock.now - begin)
            }
            self.async(execute: turn)
        }
    }
}

extension BytePipe {
    /// Writes bytes, 50,000 a second at most.
    fileprivate func fill(for duration: Duration) async {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            for _ in 0..<50 { writeOne() }
            await pause(.milliseconds(1))
        }
    }
}

extension ScenarioContext {
    /// How long a loop spins: a loop that has spun for 3 s is reported, whatever the threshold is.
    fileprivate var spin: Duration { max(stall, .seconds(4)) }
}
