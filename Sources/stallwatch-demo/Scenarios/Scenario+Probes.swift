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
            let probe = LoopProbe(label: "game")
            try await context.watch(.probe(probe))
            return await onThread("game") { playFrames(context.stall, probe.beginTurn, probe.endTurn) }
        },
        .stalling(
            "probe-c", "the same, through the functions for C", times: 2, .probe("game-c", in: "spinTheCPU(for:)")
        ) { context in
            let probe = LoopProbe(label: "game-c")
            try await context.watch(.probe(probe))
            return await onThread("game-c") {
                playFrames(
                    context.stall, { stallwatch_begin_turn(probe.handle) }, { stallwatch_end_turn(probe.handle) })
            }
        },
        .quiet("probe-idle", "a game's loop plays short frames and then waits") { context in
            let probe = LoopProbe(label: "game")
            try await context.watch(.probe(probe))
            _ = await onThread("game") { playFrames(.zero, probe.beginTurn, probe.endTurn) }
            await pause(context.threshold * 3)
            return nil
        },
        .stalling(
            "glib-loop", "a callback of a GLib main loop sleeps", times: 2, .probe("glib", in: "sleepTooLong(for:)")
        ) { context in
            let glib = try GLib.load()
            try await context.watch(.probe(GLib.probe))
            return await onThread("glib") { glib.runLoop(short: 20, stall: context.stall) }
        },
    ]
}

/// Plays twenty short frames, one that takes `long`, and twenty more short ones.
///
/// - Returns: How long the long frame took.
private func playFrames(_ long: Duration, _ begin: () -> Void, _ end: () -> Void) -> Duration {
    var injected = Duration.zero
    for frame in 0...40 {
        begin()
        if frame == 20, long > .zero {
            injected = DrivenLoop.time { spinTheCPU(for: long) }
        } else {
            spinTheCPU(for: .milliseconds(2))
        }
        end()
        sleepTooLong(for: .milliseconds(3))
    }
    return injected
}
