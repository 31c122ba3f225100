import CoreFoundation
import Dispatch
import Foundation
import StallWatch

extension Scenario {
    /// Threads with their own run loops, run in every way that apps use.
    static let threadScenarios: [Scenario] = [
        .stalling(
            "resident-thread", "a resident thread starts, runs tasks, stalls and stops", times: 2,
            .runLoop("resident", .performedBlock, in: "waitForTheSemaphore(for:)")
        ) { context in
            try await context.withLoop("resident", LoopThread.runBefore) { loop in
                for _ in 0..<20 { _ = await loop.block { sleepTooLong(for: .milliseconds(2)) } }
                await pause(.milliseconds(20))
                let injected = await loop.block { waitForTheSemaphore(for: context.stall) }
                await pause(.milliseconds(20))
                for _ in 0..<20 { _ = await loop.source0 { sleepTooLong(for: .milliseconds(2)) } }
                return injected
            }
        },
        thread("run-until-loop", "run(until:) in a while", LoopThread.runUntil),
        thread("run-before-loop", "run(mode:before:) in a while", LoopThread.runBefore),
        thread("run-in-mode-loop", "CFRunLoopRunInMode in a while", LoopThread.runInMode),
        thread("run-forever-loop", "RunLoop.run()", LoopThread.runForever),
        thread("run-once-loop", "CFRunLoopRun once", LoopThread.runOnce),
        .quiet("thread-idle", "loops of four styles wait for two thresholds") { context in
            var threads: [LoopThread] = []
            let styles = [LoopThread.runUntil, LoopThread.runBefore, LoopThread.runInMode, LoopThread.runForever]
            let monitor = try await context.watch()
            for (index, style) in styles.enumerated() {
                let thread = await LoopThread.start("idle-\(index)", style)
                try monitor.watch(.runLoop(thread.runLoop, label: "idle-\(index)"))
                threads.append(thread)
            }
            await pause(context.threshold * 2)
            for thread in threads { await thread.stop() }
        },
        .stalling(
            "gap-between-runs", "code between two runs of a loop sleeps", times: 2,
            .runLoop("gaps", .outside, in: "sleepTooLong(for:)", mode: nil)
        ) { context in
            try await stallInGap(context, watchGaps: true)
        },
        .quiet("gap-unwatched", "the same, and gaps are not watched") { context in
            _ = try await stallInGap(context, watchGaps: false)
        },
        .quiet("gap-short", "code between two runs takes 10 ms each time, and gaps are watched") { context in
            let style: LoopThread.Style = { thread in
                while !thread.isStopping {
                    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, false)
                    sleepTooLong(for: .milliseconds(10))
                }
            }
            try await context.withLoop("gaps", style, watched: { .runLoop($0, label: "gaps", watchGaps: true) }) { _ in
                await pause(context.threshold * 3)
            }
        },
        .stalling(
            "watched-before-run", "a loop is watched before its thread runs it, and stalls in its first turn", times: 2,
            .runLoop("late", .performedBlock, in: "sleepTooLong(for:)")
        ) { context in
            let gate = DispatchSemaphore(value: 0)
            let style: LoopThread.Style = { thread in
                gate.wait()
                LoopThread.runOnce(thread)
            }
            return try await context.withLoop("late", style) { loop in
                await pause(context.threshold * 1.5)
                async let injected = loop.block { sleepTooLong(for: context.stall) }
                await pause(.milliseconds(20))
                gate.signal()
                return await injected
            }
        },
        .quiet("thread-ends", "the thread of a watched loop ends") { context in
            let thread = await LoopThread.start("mortal", LoopThread.runOnce)
            try await context.watch(.runLoop(thread.runLoop, label: "mortal", watchGaps: true))
            _ = await thread.driven.block {}
            await thread.stop()
            await pause(context.threshold * 2)
        },
        .stalling(
            "stop-in-callout", "a callout sleeps and then stops its loop", times: 2,
            .runLoop("stopped", .performedBlock, in: "sleepTooLong(for:)")
        ) { context in
            let injected = DurationBox()
            _ = try await context.withLoop("stopped") { loop in
                await loop.block {
                    injected.measure { sleepTooLong(for: context.stall) }
                    CFRunLoopStop(CFRunLoopGetCurrent())
                }
            }
            return injected.value
        },
        .stalling(
            "one-of-fifty", "fifty loops turn, and one of them stalls", times: 2,
            .runLoop("loop-31", .source0, in: "sleepTooLong(for:)")
        ) { context in
            let threads = try await LoopThread.startFifty(watchedBy: try await context.watch())
            let timers = threads.map { BusyTimer(on: $0.driven, every: 0.05) }
            let injected = await threads[31].driven.source0 { sleepTooLong(for: context.stall) }
            for timer in timers { timer.stop() }
            for thread in threads { await thread.stop() }
            return injected
        },
    ]

    private static func thread(_ name: String, _ summary: String, _ style: @escaping LoopThread.Style) -> Scenario {
        .stalling(
            name, "a thread's loop, run with \(summary), sleeps in a source0", times: 2,
            .runLoop("worker", .source0, in: "sleepTooLong(for:)")
        ) { context in
            try await context.withLoop("worker", style) { loop in
                for _ in 0..<10 { _ = await loop.block { sleepTooLong(for: .milliseconds(5)) } }
                // The loop has to wait before and after, because everything in the same turn is part of the stall.
                await pause(.milliseconds(20))
                let injected = await loop.source0 { sleepTooLong(for: context.stall) }
                await pause(.milliseconds(20))
                for _ in 0..<10 { _ = await loop.timer { sleepTooLong(for: .milliseconds(5)) } }
                return injected
            }
        }
    }

    private static func stallInGap(_ context: ScenarioContext, watchGaps: Bool) async throws -> Duration {
        let injected = DurationBox()
        let gate = DispatchSemaphore(value: 0)
        let style: LoopThread.Style = { thread in
            gate.wait()
            for _ in 0..<5 { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, false) }
            injected.measure { sleepTooLong(for: context.threshold * 2) }
            // The gap ends when the loop starts to run again, so it runs once more.
            repeat { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, false) } while !thread.isStopping
        }
        try await context.withLoop("gaps", style, watched: { .runLoop($0, label: "gaps", watchGaps: watchGaps) }) { _ in
            gate.signal()
            await pause(context.threshold * 2.5)
        }
        return injected.value
    }
}
