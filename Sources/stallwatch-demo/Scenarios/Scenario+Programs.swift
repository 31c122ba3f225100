import Glibc
import StallWatch

extension Scenario {
    /// Programs of other shapes, which run as children of the demo.
    static let programScenarios: [Scenario] = [
        program(
            "main-actor", "the main actor of a program with an async @main sleeps", .asyncMain,
            .heartbeat("main", .mainQueue, in: "sleepTooLong(for:)")
        ),
        program(
            "main-actor-at-once", "an async @main sleeps right after the start of its monitor", .asyncMainAtOnce,
            .heartbeat("main", .mainQueue, in: "sleepTooLong(for:)")
        ),
        program(
            "dispatch-main", "the main queue of a program with dispatchMain() sleeps", .dispatchMain,
            .heartbeat("main", .mainQueue, in: "sleepTooLong(for:)")
        ),
        program(
            "main-run-forever", "the main actor of a program with RunLoop.main.run() sleeps", .runForever,
            .main(.mainQueue, in: "sleepTooLong(for:)")
        ),
        program(
            "main-run-before", "the main actor of a program with run(mode:before:) in a while sleeps", .runBefore,
            .main(.mainQueue, in: "sleepTooLong(for:)")
        ),
        .quiet("main-actor-idle", "a program with an async @main has nothing to do") { context in
            _ = try await context.host(.asyncMain)
            return nil
        },
        .quiet("dispatch-main-idle", "a program with dispatchMain() has nothing to do") { context in
            _ = try await context.host(.dispatchMain)
            return nil
        },
        .quiet("sigstop", "a busy program is stopped for three thresholds and goes on", suppressed: .processStopped) {
            context in
            _ = try await context.host(.busy) { child in
                await pause(context.threshold * 2)
                kill(child.id, SIGSTOP)
                await pause(context.threshold * 3)
                kill(child.id, SIGCONT)
                await pause(context.threshold * 2)
            }
            return nil
        },
    ]

    private static func program(
        _ name: String, _ summary: String, _ shape: HostShape, _ expected: ExpectedReport
    ) -> Scenario {
        .stallingOften(name, summary, times: 3, expected) { context in try await context.host(shape) }
    }
}
