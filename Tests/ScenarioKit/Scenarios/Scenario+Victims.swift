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
            return await DrivenLoop.main.source0 { sleepTooLong(for: context.stall) }
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

/// Adds a timer to the main run loop that fires once.
private func addTimer(dueIn delay: Duration) { _ = OneTimer(on: CFRunLoopGetMain(), dueIn: delay) }

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
