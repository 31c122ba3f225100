import CStallWatch
import Foundation
import Glibc
import StallWatch

extension Scenario {
    /// Loops that report their own turns.
    static let probeScenarios: [Scenario] = [
        .stalling(
            "probe", "a game's loop computes for too long in one frame", times: 2,
            .probe("game", in: "spinTheCPU(for:)")
        ) { context in
            try await context.play("game", context.stall, { $0.beginTurn() }, { $0.endTurn() })
        },
        .stalling(
            "probe-c", "the same, through the functions for C", times: 2, .probe("game-c", in: "spinTheCPU(for:)")
        ) { context in
            try await context.play(
                "game-c", context.stall, { stallwatch_begin_turn($0.handle) }, { stallwatch_end_turn($0.handle) })
        },
        .quiet("probe-idle", "a game's loop plays short frames and then waits") { context in
            _ = try await context.play("game", .zero, { $0.beginTurn() }, { $0.endTurn() })
            await pause(context.threshold * 3)
        },
        .stalling(
            "glib-loop", "a callback of a GLib main loop sleeps", times: 2, .probe("glib", in: "sleepTooLong(for:)")
        ) { context in
            let glib = try GLib.load()
            try await context.watch(.probe(GLib.probe))
            return await onThread("glib") { glib.runLoop(stall: context.stall) }
        },
    ]
}

extension ScenarioContext {
    /// Plays twenty short frames, one that takes `long`, whose time it returns, and twenty more short ones.
    fileprivate func play(
        _ label: String, _ long: Duration, _ begin: @escaping @Sendable (LoopProbe) -> Void,
        _ end: @escaping @Sendable (LoopProbe) -> Void
    ) async throws -> Duration {
        let probe = LoopProbe(label: label)
        try await watch(.probe(probe))
        return await onThread(label) {
            var injected = Duration.zero
            for frame in 0...40 {
                begin(probe)
                if frame == 20, long > .zero {
                    injected = DrivenLoop.time { spinTheCPU(for: long) }
                } else {
                    spinTheCPU(for: .milliseconds(2))
                }
                end(probe)
                sleepTooLong(for: .milliseconds(3))
            }
            return injected
        }
    }
}

extension Scenario {
    /// Programs of other shapes, which run as children of the program.
    static let programScenarios: [Scenario] = [
        program("main-actor", "the main actor of a program with an async @main sleeps", .asyncMain),
        program("main-actor-at-once", "an async @main sleeps right after the start of its monitor", .asyncMainAtOnce),
        program("dispatch-main", "the main queue of a program with dispatchMain() sleeps", .dispatchMain),
        program(
            "main-run-forever", "the main actor of a program with RunLoop.main.run() sleeps", .runForever,
            .main(.mainQueue, in: "sleepTooLong(for:)")),
        program(
            "main-run-before", "the main actor of a program with run(mode:before:) in a while sleeps", .runBefore,
            .main(.mainQueue, in: "sleepTooLong(for:)")),
        program(
            "nested-run", "the main actor waits for a process in a nested run of the main run loop", .nestedRun,
            .heartbeat("main", .mainQueue, in: "waitUntilTheChildExits(for:)")
                .waiting(for: .child, in: "clock_nanosleep")),
        .quiet("nested-run-in-timer", "a timer does, and the nested run serves the main queue") { context in
            _ = try await context.host(.nestedRunInTimer)
        },
        .quiet("main-actor-idle", "a program with an async @main has nothing to do") { context in
            _ = try await context.host(.asyncMain)
        },
        .quiet("dispatch-main-idle", "a program with dispatchMain() has nothing to do") { context in
            _ = try await context.host(.dispatchMain)
        },
        .quiet("sigstop", "a busy program is stopped for three thresholds and goes on", suppressed: .processStopped) {
            context in
            _ = try await context.host(.busy) { child in
                await child.waitForMonitor(within: .seconds(20))
                await pause(context.threshold * 2)
                kill(child.id, SIGSTOP)
                await pause(context.threshold * 3)
                kill(child.id, SIGCONT)
                await pause(context.threshold * 2)
            }
        },
    ]

    private static func program(
        _ name: String, _ summary: String, _ shape: HostShape,
        _ expected: ExpectedReport = .heartbeat("main", .mainQueue, in: "sleepTooLong(for:)")
    ) -> Scenario {
        .stallingOften(name, summary, times: 3, expected) { context in try await context.host(shape) }
    }
}
