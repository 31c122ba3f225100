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
                for part in [0.1, 0.2, 0.3] { addTimer(dueIn: context.threshold * part) }
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
                for part in [0.5, 1, 1.5] { addTimer(dueIn: context.threshold * part) }
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
                addTimer(dueIn: context.threshold * 0.1, every: context.threshold * 0.3)
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-no-skipped-firing", "the same for less than the timer's interval", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(timers: 1, due: 0.1, every: 3)
        ) { context in
            await DrivenLoop.main.source0 {
                addTimer(dueIn: context.threshold * 0.1, every: context.threshold * 3)
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-tolerance", "a source0 sleeps while a timer is due that may be a minute late", times: 2,
            .main(.source0, in: "sleepTooLong(for:)").delaying(timers: 1, due: 0.1)
        ) { context in
            await DrivenLoop.main.source0 {
                addTimer(dueIn: context.threshold * 0.1, tolerance: .seconds(60))
                sleepTooLong(for: context.stall)
            }
        },
        .stalling(
            "victims-timer-itself", "a timer sleeps while another one becomes due", times: 2,
            .main(.timer, in: "sleepTooLong(for:)").delaying(timers: 1, due: 0.2)
        ) { context in
            await MainLoop.timer {
                addTimer(dueIn: context.threshold * 0.2)
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
        .quiet("victims-served", "timers and blocks of the main queue come while the loop waits") { context in
            for _ in 0..<20 {
                addTimer(dueIn: .milliseconds(1))
                DispatchQueue.main.async {}
                await pause(.milliseconds(5))
            }
        },
    ]
}

/// Adds a timer to the main run loop that fires once, although it may be one that repeats.
private func addTimer(dueIn delay: Duration, every interval: Duration = .zero, tolerance: Duration = .zero) {
    let date = CFAbsoluteTimeGetCurrent() + delay.seconds
    let timer = CFRunLoopTimerCreateWithHandler(nil, date, interval.seconds, 0, 0) { CFRunLoopTimerInvalidate($0) }
    CFRunLoopTimerSetTolerance(timer, tolerance.seconds)
    CFRunLoopAddTimer(CFRunLoopGetMain(), timer, kCFRunLoopCommonModes)
}

extension ScenarioContext {
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
