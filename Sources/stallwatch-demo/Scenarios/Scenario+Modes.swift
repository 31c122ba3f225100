import CoreFoundation
import Foundation
import StallWatch

extension Scenario {
    /// Run loops that run in several modes, watched and unwatched ones.
    static let modeScenarios: [Scenario] = [
        .stalling(
            "mode-switch", "a thread's loop changes to a tracking mode, in which a source0 sleeps", times: 2,
            .runLoop("tracker", .source0, in: "sleepTooLong(for:)", mode: "tracking")
        ) { context in
            let thread = await LoopThread.start("tracker", modes: ["tracking"], switchModes)
            try await context.watch(.runLoop(thread.runLoop, label: "tracker", modes: [.common, .init("tracking")]))
            let injected = await thread.driven.inMode("tracking").source0 { sleepTooLong(for: context.stall) }
            await thread.stop()
            return injected
        },
        .stalling(
            "mode-switch-back", "the same, and a timer of the default mode computes", times: 2,
            .runLoop("tracker", .timer, in: "spinTheCPU(for:)")
        ) { context in
            let thread = await LoopThread.start("tracker", modes: ["tracking"], switchModes)
            try await context.watch(.runLoop(thread.runLoop, label: "tracker", modes: [.common, .init("tracking")]))
            let injected = await thread.driven.timer { spinTheCPU(for: context.stall) }
            await thread.stop()
            return injected
        },
        .quiet("mode-switch-idle", "the same, and nothing stalls") { context in
            let thread = await LoopThread.start("tracker", modes: ["tracking"], switchModes)
            try await context.watch(.runLoop(thread.runLoop, label: "tracker", modes: [.common, .init("tracking")]))
            await pause(context.threshold * 4)
            await thread.stop()
            return nil
        },
        .quiet("mode-unwatched", "a source0 sleeps in an unwatched mode") { context in
            let thread = await LoopThread.start("tracker", modes: ["tracking"], switchModes)
            try await context.watch(.runLoop(thread.runLoop, label: "tracker"))
            _ = await thread.driven.inMode("tracking").source0 { sleepTooLong(for: context.threshold * 2) }
            await thread.stop()
            return nil
        },
        .stalling(
            "mode-common-later", "a mode becomes common after the watch begins, and a source0 in it sleeps",
            times: 2,
            .runLoop("tracker", .source0, in: "sleepTooLong(for:)", mode: nil)
        ) { context in
            let thread = await LoopThread.start("tracker", modes: ["tracking"], switchModes)
            try await context.watch(.runLoop(thread.runLoop, label: "tracker"))
            CFRunLoopAddCommonMode(thread.driven.runLoop, DrivenLoop.mode("tracking"))
            let injected = await thread.driven.inMode("tracking").source0 { sleepTooLong(for: context.stall) }
            await thread.stop()
            return injected
        },
    ]

    /// Runs a loop in the default mode and the tracking mode alternately.
    private static let switchModes: LoopThread.Style = { thread in
        while !thread.isStopping {
            CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.03, false)
            CFRunLoopRunInMode(DrivenLoop.mode("tracking"), 0.03, false)
        }
    }
}
