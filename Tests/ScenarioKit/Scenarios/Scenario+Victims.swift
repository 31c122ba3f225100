import CoreFoundation
import Dispatch
import Foundation
import StallWatch

extension Scenario {
    /// Stalls of the main run loop for which others wait, and twins for which nothing waits.
    static let victimScenarios: [Scenario] = [
        .stalling(
            "victims-timers", "a source0 sleeps while three timers of the loop become due", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(timers: 3, due: 0.1)
        ) { context in
            await DrivenLoop.main.source0 {
                for part in [0.1, 0.2, 0.3] { context.addTimer(dueIn: context.threshold * part) }
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-counted", "a source0 sleeps while three timers become due, which the loop's statistics count",
            times: 4, .main(.source0, in: "sleepTooLong(for:)").delaying(timers: 3, due: 0.5)
        ) { context in
            let before = context.lateTimers
            let stall = await DrivenLoop.main.source0 {
                // Two dates that are close count as one.
                for part in [0.5, 1, 1.5] { context.addTimer(dueIn: context.threshold * part) }
                sleepTooLong(for: context.stall)
            }
            try await context.expectLateTimers(before + 3)
            return stall
        },
        .stalling(
            "victims-skipped-firings", "a source0 sleeps while a timer is due that repeats", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(timers: 1, due: 0.1, every: 0.3)
        ) { context in
            await DrivenLoop.main.source0 {
                context.addTimer(dueIn: context.threshold * 0.1, every: context.threshold * 0.3)
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-no-skipped-firing", "the same for less than the timer's interval", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(timers: 1, due: 0.1, every: 3)
        ) { context in
            await DrivenLoop.main.source0 {
                context.addTimer(dueIn: context.threshold * 0.1, every: context.threshold * 3)
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-tolerance", "a source0 sleeps while a timer is due that may be a minute late", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(timers: 1, due: 0.1)
        ) { context in
            await DrivenLoop.main.source0 {
                context.addTimer(dueIn: context.threshold * 0.1, tolerance: .seconds(60))
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-timer-itself", "a timer sleeps while another one becomes due", times: 2,
            .main(.timer, in: "sleepTooLong(for:)").delaying(timers: 1, due: 0.2)
        ) { context in
            await MainLoop.timer {
                context.addTimer(dueIn: context.threshold * 0.2)
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-blocks", "a source0 sleeps while seven blocks wait in the main queue", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(items: 7)
        ) { context in
            await DrivenLoop.main.source0 {
                for _ in 0..<7 { DispatchQueue.main.async {} }
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-of-a-block", "a main-queue block submits five others and sleeps", times: 2,
            .main(.mainQueue, in: "sleepTooLong(for:)").delaying(items: 5)
        ) { context in
            await MainLoop.mainQueue {
                for _ in 0..<5 { DispatchQueue.main.async {} }
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-tasks", "a source0 sleeps while four tasks wait for the main actor", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(items: 4)
        ) { context in
            await DrivenLoop.main.source0 {
                for _ in 0..<4 { Task { @MainActor in } }
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-event", "a source0 sleeps while an event of a pipe waits in the main queue", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(items: 1)
        ) { context in
            let pipe = BytePipe()
            let source = DispatchSource.makeReadSource(fileDescriptor: pipe.readEnd, queue: .main)
            source.setEventHandler { pipe.readOne() }
            source.resume()
            // By then the main queue has set it up.
            _ = await MainLoop.mainQueue {}
            let stall = await DrivenLoop.main.source0 {
                pipe.writeOne()
                sleepTooLong(for: context.stall)
            }
            source.cancel()
            _ = await MainLoop.mainQueue {}
            return stall
        },
        .stalling(
            "victims-queued-before", "a block that is drained with three others submits two and sleeps", times: 2,
            .main(.mainQueue, in: "sleepTooLong(for:)").delaying(items: 2)
        ) { context in
            await withCheckedContinuation { continuation in
                Source0 { source in
                    source.invalidate()
                    for _ in 0..<3 { DispatchQueue.main.async {} }
                    DispatchQueue.main.async {
                        let duration = DrivenLoop.time {
                            for _ in 0..<2 { DispatchQueue.main.async {} }
                            sleepTooLong(for: context.stall)
                        }
                        continuation.resume(returning: duration)
                    }
                }.signal()
            }
        },
        .stalling(
            "victims-later-turn", "a source0 sleeps while another one is signaled, which computes for 30 ms", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(later: 30)
        ) { context in
            let other = Source0 { source in
                source.invalidate()
                spinTheCPU(for: .milliseconds(30))
            }
            let stall = await DrivenLoop.main.source0 {
                other.signal()
                sleepTooLong(for: context.stall)
            }
            // Comes after the other source.
            _ = await MainLoop.mainQueue {}
            return stall
        },
        .stalling(
            "victims-no-later-turn", "a source0 sleeps, and another one is signaled 50 ms after that", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying()
        ) { context in
            let stall = await DrivenLoop.main.source0 { sleepTooLong(for: context.stall) }
            await pause(.milliseconds(50))
            _ = await DrivenLoop.main.source0 { spinTheCPU(for: .milliseconds(30)) }
            return stall
        },
        .stalling(
            "victims-operations", "a source0 sleeps while two operations are in flight", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(operations: 2)
        ) { context in
            await context.monitor.withLimit(.seconds(600), "GET /feed") {
                await context.monitor.withLimit(.seconds(600), "POST /notes") {
                    await DrivenLoop.main.source0 { sleepTooLong(for: context.stall) }
                }
            }
        },
        .stalling(
            "victims-no-operations", "a source0 sleeps after two operations have ended", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying()
        ) { context in
            for name in ["GET /feed", "POST /notes"] { await context.monitor.withLimit(.seconds(600), name) {} }
            return await DrivenLoop.main.source0 { sleepTooLong(for: context.stall) }
        },
        .stalling(
            "victims-none", "a source0 sleeps, and a timer is due after that", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying()
        ) { context in
            let later = OneTimer(on: CFRunLoopGetMain(), dueIn: .seconds(60))
            defer { later.invalidate() }
            let before = context.lateTimers
            let stall = await DrivenLoop.main.source0 { sleepTooLong(for: context.stall) }
            try await context.expectLateTimers(before)
            return stall
        },
        .stalling(
            "victims-none-itself", "a timer sleeps, and it is the only one that was due", times: 2,
            .main(.timer, in: "sleepTooLong(for:)").delaying()
        ) { context in
            await MainLoop.timer { sleepTooLong(for: context.stall) }
        },
        .stalling(
            "victims-slow-blocks", "a source0 sleeps while seven blocks wait, which compute for 40 ms each in its turn",
            times: 4, .main(.source0, in: "sleepTooLong(for:)").delaying(items: 7)
        ) { context in
            await timeTurn {
                for _ in 0..<7 { DispatchQueue.main.async { spinTheCPU(for: .milliseconds(40)) } }
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-slow-timers", "a source0 sleeps while three timers become due, which compute for 70 ms each",
            times: 4, .main(.source0, in: "sleepTooLong(for:)").delaying(timers: 3)
        ) { context in
            await timeTurn {
                for part in [0.1, 0.2, 0.3] {
                    context.addTimer(
                        dueIn: context.threshold * part, work: { spinTheCPU(for: .milliseconds(70)) })
                }
                sleepTooLong(for: context.stall)
            }
        },
        .quiet("victims-slow-served", "such blocks and timers come one by one, while the loop waits") { context in
            for _ in 0..<7 { _ = await MainLoop.mainQueue { spinTheCPU(for: .milliseconds(40)) } }
            for _ in 0..<3 { _ = await DrivenLoop.main.timer { spinTheCPU(for: .milliseconds(70)) } }
        },
        .stalling(
            "victims-due-before", "a source0 runs the loop in a modal mode while a timer is due, and then sleeps",
            times: 2, .runLoop("tracker", .source0, in: "sleepTooLong(for:)").delaying(timers: 1, items: nil)
        ) { context in
            try await context.stallAfterModalRun(timerDueIn: context.threshold * 0.1)
        },
        .stalling(
            "victims-not-due-before", "the same, and the timer is due after the stall", times: 2,
            .runLoop("tracker", .source0, in: "sleepTooLong(for:)").delaying(items: nil)
        ) { context in
            try await context.stallAfterModalRun(timerDueIn: .seconds(60))
        },
        .quiet("victims-served", "timers and blocks of the main queue come while the loop waits") { context in
            for _ in 0..<20 {
                context.addTimer(dueIn: .milliseconds(1))
                DispatchQueue.main.async {}
                await pause(.milliseconds(5))
            }
        },
    ]
}

/// Calls `work` in a source0 of the main loop; returns the time from then to the end of the turn, in which the loop may
/// serve what has waited.
private func timeTurn(_ work: @escaping DrivenLoop.Work) async -> Duration {
    await withCheckedContinuation { (continuation: CheckedContinuation<Duration, Never>) in
        Source0 { source in
            source.invalidate()
            let begin = SuspendingClock.now
            work()
            let end = CFRunLoopActivity.beforeSources.rawValue | CFRunLoopActivity.beforeWaiting.rawValue
            let observer = CFRunLoopObserverCreateWithHandler(nil, end, false, 0) { _, _ in
                continuation.resume(returning: SuspendingClock.now - begin)
            }
            CFRunLoopAddObserver(CFRunLoopGetMain(), observer, kCFRunLoopCommonModes)
        }.signal()
    }
}

extension ScenarioContext {
    /// Adds a timer to a run loop that fires once, although it may be one that repeats, and keeps how late it was.
    ///
    /// `within` returns the part of that within the stall; then it calls `work`.
    fileprivate func addTimer(
        dueIn delay: Duration, every interval: Duration = .zero, tolerance: Duration = .zero,
        to loop: DrivenLoop = .main, within: @escaping @Sendable (Duration) -> Duration = { $0 },
        work: @escaping DrivenLoop.Work = {}
    ) {
        let due = SuspendingClock.now + delay
        let date = CFAbsoluteTimeGetCurrent() + delay.seconds
        let timer = CFRunLoopTimerCreateWithHandler(nil, date, interval.seconds, 0, 0) { [self] fired in
            CFRunLoopTimerInvalidate(fired)
            let late = SuspendingClock.now - due
            addTimerWait(late, within: within(late))
            work()
        }
        CFRunLoopTimerSetTolerance(timer, tolerance.seconds)
        CFRunLoopAddTimer(loop.runLoop, timer, loop.mode)
    }

    /// Stalls a thread's loop after it has run in a modal mode for four thresholds, in which no other timer fires.
    fileprivate func stallAfterModalRun(timerDueIn delay: Duration) async throws -> Duration {
        try await withLoop(
            "tracker", modes: ["tracking"],
            watched: { .runLoop($0, label: "tracker", modes: [.common, .init("tracking")]) }, modalModes: ["tracking"]
        ) { loop in
            let injected = DurationBox()
            _ = await loop.source0 { [self] in
                var inDefaultMode = loop
                inDefaultMode.mode = kCFRunLoopDefaultMode
                addTimer(dueIn: delay, to: inDefaultMode, within: { min($0, injected.value) })
                CFRunLoopRunInMode(DrivenLoop.mode("tracking"), (threshold * 4).seconds, false)
                injected.measure { sleepTooLong(for: stall) }
            }
            // The loop must fire it before it ends.
            for _ in 0..<500 where delay < threshold && timerDelay == nil { await pause(.milliseconds(10)) }
            return injected.value
        }
    }

    /// How many timers of the main loop the monitor has seen late.
    fileprivate var lateTimers: Int { monitor.statistics.loops.first { $0.label == "main" }?.lateTimers ?? 0 }

    /// Waits until the monitor has seen so many late timers of the main loop; throws if it has seen others.
    fileprivate func expectLateTimers(_ count: Int) async throws {
        for _ in 0..<500 where lateTimers < count { await pause(.milliseconds(10)) }
        // For those that are too many.
        await pause(threshold)
        let seen = lateTimers
        guard seen == count else { throw NoResult(sentence: "\(seen) timers were late, where \(count) were") }
    }
}

/// A timer of any thread's loop, which fires once.
///
/// `@unchecked Sendable`: CFRunLoopTimerInvalidate takes the timer's own lock.
final class OneTimer: @unchecked Sendable {
    private let timer: CFRunLoopTimer?

    init(on runLoop: CFRunLoop, dueIn delay: Duration) {
        timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent() + delay.seconds, 0, 0, 0) { _ in }
        CFRunLoopAddTimer(runLoop, timer, kCFRunLoopCommonModes)
    }

    func invalidate() { CFRunLoopTimerInvalidate(timer) }
}
