import CoreFoundation
import Dispatch
import Foundation
import StallWatch
import Synchronization

extension Scenario {
    /// Run loops that run in several modes, watched and unwatched ones.
    static let modeScenarios: [Scenario] = [
        .stalling(
            "mode-switch", "a thread's loop changes to a tracking mode, in which a source0 sleeps", times: 2,
            .runLoop("tracker", .source0, in: "sleepTooLong(for:)", mode: "tracking")
        ) { context in
            try await context.withLoop("tracker", modes: ["tracking"], switchModes, watched: inBothModes) { loop in
                await loop.inMode("tracking").source0 { sleepTooLong(for: context.stall) }
            }
        },
        .stalling(
            "mode-switch-back", "the same, and a timer of the default mode computes", times: 2,
            .runLoop("tracker", .timer, in: "spinTheCPU(for:)")
        ) { context in
            try await context.withLoop("tracker", modes: ["tracking"], switchModes, watched: inBothModes) { loop in
                await loop.timer { spinTheCPU(for: context.stall) }
            }
        },
        .quiet("mode-switch-idle", "the same, and nothing stalls") { context in
            try await context.withLoop("tracker", modes: ["tracking"], switchModes, watched: inBothModes) { _ in
                await pause(context.threshold * 4)
            }
        },
        .quiet("mode-unwatched", "a source0 sleeps in an unwatched mode") { context in
            _ = try await context.withLoop("tracker", modes: ["tracking"], switchModes) { loop in
                await loop.inMode("tracking").source0 { sleepTooLong(for: context.threshold * 2) }
            }
        },
        .stalling(
            "mode-common-later", "a mode becomes common after the watch begins, and a source0 in it sleeps",
            times: 2,
            .runLoop("tracker", .source0, in: "sleepTooLong(for:)", mode: nil)
        ) { context in
            try await context.withLoop("tracker", modes: ["tracking"], switchModes) { loop in
                CFRunLoopAddCommonMode(loop.runLoop, DrivenLoop.mode("tracking"))
                return await loop.inMode("tracking").source0 { sleepTooLong(for: context.stall) }
            }
        },
    ]

    /// A run loop that runs in another mode while its default mode waits, or has no work.
    static let modeStarvationScenarios: [Scenario] = [
        .stalling(
            "mode-starvation", "a thread runs its loop in a tracking mode while a timer of the default mode is due",
            times: 12,
            ExpectedReport(
                kind: .modeStarvation, loop: "tracker", mode: "tracking", callout: .source0,
                function: "trackMovement(for:on:isTimerDue:timerMode:)")
        ) { context in
            try await context.withTracker { loop in
                // A mode that has starved for 1 s is reported, whatever the threshold is.
                await loop.source0 { trackMovement(for: max(context.stall, .seconds(3)), on: loop) }
            }
        },
        .quiet("mode-starvation-modal", "the same in a mode that is declared as modal") { context in
            try await context.withTracker(modalModes: ["tracking"]) { loop in
                await loop.source0 { trackMovement(for: .seconds(2), on: loop) }
            }
        },
        .quiet("mode-starvation-short", "the same for less than the limit") { context in
            try await context.withTracker { loop in
                await loop.source0 { trackMovement(for: .milliseconds(700), on: loop) }
            }
        },
        .quiet("mode-starvation-nothing-due", "the same, and the default mode has no work") { context in
            try await context.withTracker { loop in
                await loop.timer { trackMovement(for: .seconds(2), on: loop, isTimerDue: false) }
            }
        },
        .quiet("mode-starvation-dispatch-timer", "the same, and the timer is one of libdispatch, which needs no mode") {
            context in
            let fired = Atomic(0)
            let timer = DispatchSource.makeTimerSource()
            timer.schedule(deadline: .now(), repeating: 0.1)
            timer.setEventHandler { fired.add(1, ordering: .relaxed) }
            timer.resume()
            try await context.withTracker { loop in
                await loop.source0 { trackMovement(for: .seconds(2), on: loop, isTimerDue: false) }
            }
            timer.cancel()
            guard fired.load(ordering: .relaxed) > 1 else { throw NoResult(sentence: "the timer has not fired") }
        },
        .quiet("put-off-to-default-mode", "a block waits for the end of the tracking mode on purpose, for 2 s") {
            context in
            try await context.withTracker { loop in
                await loop.source0 {
                    CFRunLoopPerformBlock(loop.runLoop, kCFRunLoopDefaultMode) { spinTheCPU(for: .milliseconds(5)) }
                    trackMovement(for: .seconds(2), on: loop, isTimerDue: false)
                }
            }
        },
        .quiet("mode-starvation-common", "the same in a common mode, which fires the common modes' timer") { context in
            try await context.withTracker { loop in
                CFRunLoopAddCommonMode(loop.runLoop, DrivenLoop.mode("tracking"))
                return await loop.source0 {
                    trackMovement(for: .seconds(2), on: loop, timerMode: kCFRunLoopCommonModes)
                }
            }
        },
    ]

    /// Runs a loop in the default mode and the tracking mode alternately.
    private static let switchModes: LoopThread.Style = { thread in
        while !thread.isStopping {
            CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.03, false)
            CFRunLoopRunInMode(DrivenLoop.mode("tracking"), 0.03, false)
        }
    }

    private static func inBothModes(_ loop: RunLoop) -> WatchedLoop {
        .runLoop(loop, label: "tracker", modes: [.common, .init("tracking")])
    }
}

extension ScenarioContext {
    /// Watches a loop that runs in the default mode until a callout runs it in the tracking mode.
    @discardableResult
    fileprivate func withTracker(
        modalModes: Set<String> = [], _ body: (DrivenLoop) async -> Duration
    ) async throws -> Duration {
        try await withLoop(
            "tracker", modes: ["tracking"],
            { thread in while !thread.isStopping { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, true) } },
            modalModes: modalModes, body)
    }
}

/// Runs the loop in the tracking mode, while a timer of another mode fires ten times a second, if it can.
@inline(never)
private func trackMovement(
    for duration: Duration, on loop: DrivenLoop, isTimerDue: Bool = true, timerMode: CFRunLoopMode? = nil
) {
    let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent() + 0.05, 0.1, 0, 0) { _ in }
    if isTimerDue { CFRunLoopAddTimer(loop.runLoop, timer, timerMode ?? kCFRunLoopDefaultMode) }
    let end = SuspendingClock.now + duration
    while case let left = end - SuspendingClock.now, left > .zero {
        CFRunLoopRunInMode(DrivenLoop.mode("tracking"), left.seconds, false)
    }
    CFRunLoopTimerInvalidate(timer)
}

extension Scenario {
    /// Runs of the main run loop inside its own callouts.
    static let nestingScenarios: [Scenario] = [
        .quiet("nested-waits", "a timer runs the loop for three thresholds with nothing to do") { context in
            _ = await MainLoop.timer { runNested(for: context.threshold * 3) }
        },
        .quiet("nested-private-waits", "the same, in an unwatched mode") { context in
            _ = await MainLoop.timer { runNested(for: context.threshold * 3, in: "private") }
        },
        .quiet("nested-private-works", "the same, and the nested run always has work") { context in
            let timer = BusyTimer(on: .main.inMode("private")) { spinTheCPU(for: .microseconds(800)) }
            _ = await MainLoop.timer { runNested(for: context.threshold * 4, in: "private") }
            timer.stop()
        },
        .stalling(
            "nested-private-stalls", "a timer runs the loop in an unwatched mode, until a source0 has slept",
            times: 3, .main(.source0, in: "sleepTooLong(for:)")
        ) { context in
            let injected = DurationBox()
            _ = await MainLoop.timer {
                Source0(mode: DrivenLoop.mode("private")) { source in
                    source.invalidate()
                    injected.measure { sleepTooLong(for: context.stall) }
                }.signal()
                CFRunLoopRunInMode(DrivenLoop.mode("private"), 60, true)
            }
            return injected.value
        },
        .quiet("nested-works", "a nested run always has short work") { context in
            let timer = BusyTimer(on: .main)
            _ = await MainLoop.timer { runNested(for: context.threshold * 3) }
            timer.stop()
        },
        .stalling(
            "nested-stalls", "a timer runs the loop, and a source0 of that run sleeps", times: 2,
            .main(.source0, in: "sleepTooLong(for:)", nesting: 1)
        ) { context in
            let nested = Task { await MainLoop.timer { runNested(for: context.threshold + context.stall) } }
            await pause(context.threshold / 2)
            let injected = await DrivenLoop.main.source0 { sleepTooLong(for: context.stall) }
            _ = await nested.value
            return injected
        },
        .stalling(
            "nested-deep-stalls", "the same, three runs deep", times: 2,
            .main(.timer, in: "spinTheCPU(for:)", nesting: 3)
        ) { context in
            let nested = Task {
                await DrivenLoop.main.source0 { runNested(for: context.threshold + context.stall, depth: 3) }
            }
            await pause(context.threshold / 2)
            let injected = await DrivenLoop.main.timer { spinTheCPU(for: context.stall) }
            _ = await nested.value
            return injected
        },
        .stalling(
            "nested-outer-stalls", "a timer runs the loop and then sleeps itself", times: 2,
            .main(.timer, in: "sleepTooLong(for:)")
        ) { context in
            let injected = DurationBox()
            _ = await MainLoop.timer {
                runNested(for: context.threshold / 2)
                injected.measure { sleepTooLong(for: context.stall) }
            }
            return injected.value
        },
        .stalling(
            "nested-after-stall", "a main-queue block sleeps and then runs the loop", times: 2,
            .main(.mainQueue, in: "sleepTooLong(for:)")
        ) { context in
            let injected = DurationBox()
            _ = await MainLoop.mainQueue {
                injected.measure { sleepTooLong(for: context.stall) }
                runNested(for: context.threshold)
            }
            return injected.value
        },
    ]
}

/// Runs the calling thread's loop inside one of its callouts, nested `depth` times.
func runNested(for duration: Duration, in mode: String? = nil, depth: Int = 1) {
    let loop: CFRunLoop = CFRunLoopGetCurrent()
    let mode: CFRunLoopMode = mode.map(DrivenLoop.mode) ?? kCFRunLoopDefaultMode
    // A run without a source or a timer would end at once.
    let source = Source0(on: loop, mode: mode) { _ in }
    defer { source.invalidate() }
    let end = SuspendingClock.now + duration
    if depth > 1 {
        Source0(on: loop, mode: mode) { source in
            source.invalidate()
            runNested(for: duration, depth: depth - 1)
        }.signal()
    }
    while case let left = end - SuspendingClock.now, left > .zero {
        CFRunLoopRunInMode(mode, left.seconds, false)
    }
}
