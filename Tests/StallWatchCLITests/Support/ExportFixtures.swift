@testable import StallWatchCLI

extension StallProfile {
    /// Two loops; one stall with two samples, one with an inlined function, and one without a stack.
    static func fixture() throws -> StallProfile {
        var profile = StallProfile()
        profile.add(
            try StackFixture.report(
                1_000, startedAt: "2026-11-21T08:00:01.000000Z",
                [.init(at: 250, stack: ["libc!wait", "save", "main"]), .init(at: 750, stack: ["parse", "main"])]
            )
        )
        profile.add(
            try StackFixture.report(
                300.25, startedAt: "2026-11-21T08:00:00.000000Z", cause: "lock",
                [.init(at: 250, stack: ["^copy", "save", "main"])]
            )
        )
        profile.add(try StackFixture.report(0.5, loop: "other loop", cause: nil, []))
        return profile
    }
}
