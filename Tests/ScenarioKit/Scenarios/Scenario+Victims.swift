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
