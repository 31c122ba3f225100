import Testing

@testable import StallWatch

@Suite struct RepeatPolicyTests {
    private let second: UInt64 = 1_000_000_000

    @Test func powersOfTwoAreReportedAndTheOthersCounted() {
        var policy = RepeatPolicy(reportsPerMinute: 1_000)
        let verdicts = (1...17).map { _ in policy.judge("a", at: 0) }
        let reported = verdicts.enumerated().compactMap { index, verdict -> [Int]? in
            if case .report(let repeats) = verdict { [index + 1, repeats] } else { nil }
        }
        #expect(reported == [[1, 0], [2, 0], [4, 1], [8, 3], [16, 7]])
        #expect(verdicts[16] == .suppressed(.repeated))
        #expect(policy.repeats(of: "a") == 1)
        #expect(policy.judge("b", at: 0) == .report(repeats: 0), "another fingerprint")
    }

    @Test func everyRepeatIsReportedUpToTheLimitIfConfigured() {
        var policy = RepeatPolicy(reportsPerMinute: 3, reportsEveryRepeat: true)
        for _ in 1...3 { #expect(policy.judge("a", at: 0) == .report(repeats: 0)) }
        #expect(policy.judge("a", at: 0) == .suppressed(.rateLimit))
        #expect(policy.judge("a", at: 60 * second) == .report(repeats: 1))
    }

    @Test func reportsPerMinuteAreLimited() {
        var policy = RepeatPolicy(reportsPerMinute: 3)
        for name in ["a", "b", "c"] { #expect(policy.judge(name, at: 10 * second) == .report(repeats: 0)) }
        #expect(policy.judge("d", at: 20 * second) == .suppressed(.rateLimit))
        #expect(policy.judge("d", at: 70 * second - 1) == .suppressed(.rateLimit))
        #expect(policy.judge("d", at: 70 * second) == .report(repeats: 2), "the suppressed report is due again")
    }

    @Test func everyStallIsInAReportOrStillCounted() {
        var policy = RepeatPolicy(reportsPerMinute: 7)
        var told = 0
        for number in 0..<5_000 {
            if case .report(let repeats) = policy.judge("f\(number % 13)", at: UInt64(number) * second) {
                told += 1 + repeats
            }
        }
        #expect(told + (0..<13).reduce(0) { $0 + policy.repeats(of: "f\($1)") } == 5_000)
    }

    @Test func theLeastRecentFingerprintIsForgotten() {
        var policy = RepeatPolicy(reportsPerMinute: 10_000)
        for number in 0...RepeatPolicy.maximumFingerprints { _ = policy.judge("f\(number)", at: UInt64(number)) }
        #expect(policy.judge("f1", at: 5_000) == .report(repeats: 0), "still known: occurrence 2")
        #expect(policy.judge("f1", at: 5_001) == .suppressed(.repeated))
        #expect(policy.judge("f0", at: 6_000) == .report(repeats: 0), "forgotten, so occurrence 1 again")
    }

    @Test func delaysAfterFailuresGrow() {
        var backoff = Backoff()
        #expect(backoff.mayTry(at: 0))
        var now: UInt64 = 0
        var waits: [UInt64] = []
        for _ in 0..<11 {
            backoff.failed(at: now)
            let next = backoff.nextAttempt ?? 0
            waits.append((next - now) / second)
            #expect(!backoff.mayTry(at: next - 1))
            now = next
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
        backoff.succeeded()
        #expect(backoff.mayTry(at: 0))
    }

    @Test func retriesAreBoundedAndKeepTheNewestState() {
        var retries = Retries()
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        #expect(retries.keep(.updated(report)) == 0)
        #expect(retries.keep(.ended(report, nil)) == 0)
        #expect(retries.waiting == 1)
        var lost = 0
        for _ in 0..<Retries.capacity {
            lost += retries.keep(.ended(Reporter.Settings.fixture().builder().report(of: .fixture()), nil))
        }
        #expect(retries.waiting == Retries.capacity)
        #expect(lost == 1)
    }
}
