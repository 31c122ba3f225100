import CoreFoundation
import Foundation
import StallWatch

extension Scenario {
    /// Changes of a monitor's settings, and several monitors in one process.
    static let monitorScenarios: [Scenario] = [
        .stallingOften(
            "two-monitors", "two monitors watch the same loop, and both report", times: 2,
            ExpectedReport(loop: "shared", callout: .source0, function: "sleepTooLong(for:)", count: 2)
        ) { context in
            let thread = await LoopThread.start("shared", LoopThread.runOnce)
            for _ in 0..<2 { try await context.watch(.runLoop(thread.runLoop, label: "shared")) }
            let injected = await thread.driven.source0 { sleepTooLong(for: context.stall) }
            await thread.stop()
            return [injected, injected]
        },
        .stalling(
            "loop-threshold", "a loop with its own threshold stalls for less than the monitor's", times: 0.7,
            .runLoop("strict", .timer, in: "sleepTooLong(for:)")
        ) { context in
            try await context.withLoop("strict", threshold: context.threshold * 0.4) { loop in
                await loop.timer { sleepTooLong(for: context.stall) }
            }
        },
        .stalling(
            "threshold-lowered", "the threshold is lowered while the monitor runs", times: 0.9,
            .main(.timer, in: "sleepTooLong(for:)")
        ) { context in
            try context.mainLoop.setThreshold(context.threshold * 0.2)
            defer { restoreThreshold(context) }
            return await MainLoop.timer { sleepTooLong(for: context.stall) }
        },
        .quiet("threshold-raised", "the threshold is raised while the monitor runs") { context in
            try context.mainLoop.setThreshold(context.threshold * 8)
            defer { restoreThreshold(context) }
            _ = await MainLoop.timer { sleepTooLong(for: context.threshold * 2) }
            // The turn lasts a little longer, and would exceed the restored threshold.
            await pause(.milliseconds(20))
        },
        .stalling(
            "threshold-lowered-in-turn", "the threshold is lowered while a turn lasts", times: 2,
            .main(.source0, in: "sleepTooLong(for:)")
        ) { context in
            try context.mainLoop.setThreshold(context.threshold * 8)
            defer { restoreThreshold(context) }
            async let injected = DrivenLoop.main.source0 { sleepTooLong(for: context.stall) }
            await pause(context.threshold * 1.5)
            restoreThreshold(context)
            return await injected
        },
        .quiet("unwatched", "a loop sleeps after its watch has ended") { context in
            let thread = await LoopThread.start("free", LoopThread.runOnce)
            let loop = try await context.watch().watch(.runLoop(thread.runLoop, label: "free"))
            _ = await thread.driven.block {}
            loop.stop()
            _ = await thread.driven.source0 { sleepTooLong(for: context.threshold * 2) }
            await thread.stop()
        },
        .stalling(
            "watched-again", "a loop is watched, unwatched and watched again, and computes", times: 2,
            .runLoop("second", .timer, in: "spinTheCPU(for:)")
        ) { context in
            let thread = await LoopThread.start("again", LoopThread.runOnce)
            let monitor = try await context.watch()
            try monitor.watch(.runLoop(thread.runLoop, label: "first")).stop()
            try monitor.watch(.runLoop(thread.runLoop, label: "second"))
            let injected = await thread.driven.timer { spinTheCPU(for: context.stall) }
            await thread.stop()
            return injected
        },
        .stalling(
            "saturated", "a source0 feeds itself with short turns for several thresholds", times: 4,
            ExpectedReport(kind: .saturation, loop: "fed", callout: .source0, function: "spinTheCPU(for:)")
        ) { context in
            try await context.withLoop("fed", saturationThreshold: context.threshold * 2) { loop in
                await loop.feed(for: context.stall)
            }
        },
        .quiet("not-saturated", "the same for less than the saturation threshold") { context in
            _ = try await context.withLoop("fed", saturationThreshold: context.threshold * 4) { loop in
                await loop.feed(for: context.threshold * 2)
            }
        },
    ]

    private static func restoreThreshold(_ context: ScenarioContext) {
        // Throws only for a threshold out of range, and the monitor has this one.
        try? context.mainLoop.setThreshold(context.threshold)
    }
}

extension DrivenLoop {
    /// Makes a source signal itself repeatedly and compute 5 ms each time; returns how long the loop did not wait.
    ///
    /// That is long compared to the time between two turns, in which a sample would show nothing.
    fileprivate func feed(for duration: Duration) async -> Duration {
        let begin = SuspendingClock.now
        return await withCheckedContinuation { continuation in
            Source0(on: runLoop, mode: mode) { source in
                let elapsed = SuspendingClock.now - begin
                spinTheCPU(for: .milliseconds(5))
                guard elapsed >= duration else { return source.signal() }
                source.invalidate()
                continuation.resume(returning: SuspendingClock.now - begin)
            }.signal()
        }
    }
}
