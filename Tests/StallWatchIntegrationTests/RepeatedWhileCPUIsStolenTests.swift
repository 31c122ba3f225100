import Synchronization
import TestSupport
import Testing

/// What repeats other tests is tested with hosts that take all and nothing.
@Suite struct RepeatedWhileCPUIsStolenTests {
    /// How often a test is done that passes from attempt `passing` on.
    private func attempts(passing: Int, isStolen: Bool) async throws -> Int {
        let count = Atomic<Int>(0)
        let trait = RepeatedWhileCPUIsStolen { { isStolen } }
        try await trait.provideScope(for: #require(Test.current), testCase: nil) {
            let attempt = count.add(1, ordering: .relaxed).newValue
            #expect(attempt >= passing)
            try #require(attempt >= passing)
        }
        return count.load(ordering: .relaxed)
    }

    @Test func whatPassesIsDoneOnce() async throws {
        #expect(try await attempts(passing: 1, isStolen: true) == 1)
    }

    @Test func whatFailsWithoutTheCPUsIsDoneAgain() async throws {
        #expect(try await attempts(passing: 3, isStolen: true) == 3)
    }

    @Test func theLastAttemptIsJudgedWhateverTheHostDoes() async throws {
        let last = RepeatedWhileCPUIsStolen.attempts
        #expect(try await attempts(passing: last, isStolen: true) == last)
        await withKnownIssue { _ = try await attempts(passing: last + 1, isStolen: true) }
    }

    @Test func whatFailsWithAllCPUsHasFailed() async throws {
        await withKnownIssue { _ = try await attempts(passing: 2, isStolen: false) }
    }
}
