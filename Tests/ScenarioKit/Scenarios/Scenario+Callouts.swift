import CoreFoundation
import Dispatch
import StallWatch
import Foundation

extension Scenario {
    /// Stalls of the main run loop in its other callouts.
    static let calloutScenarios: [Scenario] = [
        .stalling("cf-timer", "a CFRunLoopTimer sleeps", times: 2, .main(.timer, in: "sleepTooLong(for:)")) { context in
            await DrivenLoop.main.timer { sleepTooLong(for: context.stall) }
        },
        .stalling(
            "source1", "a source that the kernel signals sleeps", times: 2, .main(.source1, in: "sleepTooLong(for:)")
        ) { context in
            await DrivenLoop.main.source1 { sleepTooLong(for: context.stall) }
        },
        observed(
            .beforeWaiting, "before-waiting", "computes right before the loop waits", in: "spinTheCPU", spinTheCPU),
        observed(.afterWaiting, "after-waiting", "sleeps right after the wait", in: "sleepTooLong", sleepTooLong),
        observed(.beforeSources, "before-sources", "sleeps right before the sources", in: "sleepTooLong", sleepTooLong),
        .stalling(
            "main-actor-task", "a task on the main actor computes", times: 2,
            .main(.mainQueue, in: "spinTheCPU(for:)")
        ) { context in
            await Task { @MainActor in DrivenLoop.time { spinTheCPU(for: context.stall) } }.value
        },
        .stalling(
            "main-queue-sync", "another thread calls sync on the main queue with a block that sleeps", times: 2,
            .main(.mainQueue, in: "sleepTooLong(for:)")
        ) { context in
            await onThread("caller") {
                DispatchQueue.main.sync { DrivenLoop.time { sleepTooLong(for: context.stall) } }
            }
        },
        .stalling(
            "burst-main-queue", "one callout runs 200 small main-queue blocks", times: 2.5,
            ExpectedReport(mode: ExpectedReport.defaultMode, callout: .mainQueue, differingSamples: true)
        ) { context in
            await DispatchQueue.main.burst(200, for: context.stall)
        },
        .inMainLoop("deep-recursion", "a timer sleeps 500 calls deep", .main(.timer, in: "sleepTooLong(for:)")) {
            duration in
            recurse(500) { sleepTooLong(for: duration) }
        },
        .inMainLoop(
            "long-stall", "a timer computes for ten thresholds", times: 10, .main(.timer, in: "spinTheCPU(for:)"),
            spinTheCPU),
        .inMainLoop(
            "barely", "a source0 sleeps for 110 % of the threshold", times: 1.1,
            .main(.source0, in: "sleepTooLong(for:)"), sleepTooLong),
        .stallingOften(
            "five-stalls", "five stalls, one in each kind of callout and one more", times: 1.5,
            ExpectedReport(mode: ExpectedReport.defaultMode, function: "sleepTooLong(for:)", count: 5)
        ) { context in
            await MainLoop.callInTurn(5) { sleepTooLong(for: context.stall) }
        },
    ]

    /// A stall in an observer of the main run loop.
    private static func observed(
        _ activity: CFRunLoopActivity, _ name: String, _ summary: String, in function: String,
        _ stall: @escaping @Sendable (Duration) -> Void
    ) -> Scenario {
        .stalling(
            "observer-" + name, "the app's own observer " + summary, times: 2,
            .main(.observer, in: function + "(for:)")
        ) { context in
            await DrivenLoop.main.observer(of: activity) { stall(context.stall) }
        }
    }
}

@inline(never)
private func recurse(_ depth: Int, _ work: () -> Void) {
    if depth == 0 { work() } else { recurse(depth - 1, work) }
    // Keeps the call from being the last one, which an optimizer would turn into a loop.
    withExtendedLifetime(depth) {}
}

func onThread<Result: Sendable>(_ name: String, _ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            Thread.current.name = name
            continuation.resume(returning: work())
        }
    }
}
