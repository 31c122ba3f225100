import Testing

@testable import StallWatch

@Suite struct RepeatPolicyTests {
    private let second: UInt64 = 1_000_000_000

    /// Decides about a stall of 100 ms; `nil` if it is suppressed, else the number of repeats.
    private func repeats(_ policy: inout RepeatPolicy, _ fingerprint: String, at now: UInt64) -> Int? {
        let decision = policy.decide(fingerprint, lasting: 100, at: now)
        return decision.suppressed == nil ? decision.repeats.count : nil
    }

    @Test func `powers of two are reported and the others counted`() {
        var policy = RepeatPolicy(reportsPerMinute: 1_000)
        let decisions = (1...17).map { policy.decide("a", lasting: Double($0) * 100, at: 0) }
        let reported = decisions.enumerated().filter { $1.suppressed == nil }.map { [$0 + 1, $1.repeats.count] }
        #expect(reported == [[1, 0], [2, 0], [4, 1], [8, 3], [16, 7]])
        #expect(decisions[16].suppressed == .repeated)
        #expect(decisions[15].repeats.durations?.totalMilliseconds == Double(100 * (9...15).reduce(0, +)))
        #expect(decisions[15].repeats.durations?.leastMilliseconds == 900)
        #expect(decisions[15].repeats.durations?.greatestMilliseconds == 1_500)
        #expect(repeats(&policy, "b", at: 0) == 0, "another fingerprint")
    }

    @Test func `a suppressed stall stands for those before it`() {
        var policy = RepeatPolicy(reportsPerMinute: 1_000)
        let decisions = (1...8).map { _ in policy.decide("a", lasting: 100, at: 0) }
        #expect(decisions[4...6].map(\.repeats.count) == [0, 1, 2])
        #expect(decisions[4].repeats.durations == nil)
        #expect(decisions[6].repeats.durations?.totalMilliseconds == 200)
        #expect(decisions[7].suppressed == nil && decisions[7].repeats.count == 3)
    }

    @Test func `every repeat is reported up to the limit if configured`() {
        var policy = RepeatPolicy(reportsPerMinute: 3, reportsEveryRepeat: true)
        for _ in 1...3 { #expect(repeats(&policy, "a", at: 0) == 0) }
        #expect(policy.decide("a", lasting: 1, at: 0).suppressed == .rateLimit)
        #expect(repeats(&policy, "a", at: 60 * second) == 1)
    }

    @Test func `reports per minute are limited`() {
        var policy = RepeatPolicy(reportsPerMinute: 3)
        for name in ["a", "b", "c"] { #expect(repeats(&policy, name, at: 10 * second) == 0) }
        #expect(policy.decide("d", lasting: 1, at: 20 * second).suppressed == .rateLimit)
        #expect(policy.decide("d", lasting: 1, at: 70 * second - 1).suppressed == .rateLimit)
        #expect(repeats(&policy, "d", at: 70 * second) == 2, "the suppressed report is due again")
    }

    @Test func `every stall is in a report or in the newest suppressed one`() {
        var policy = RepeatPolicy(reportsPerMinute: 7)
        var counted = 0
        var newest: [String: Int] = [:]
        for number in 0..<5_000 {
            let name = "f\(number % 13)"
            let decision = policy.decide(name, lasting: 1, at: UInt64(number) * second)
            newest[name] = decision.suppressed == nil ? nil : 1 + decision.repeats.count
            if decision.suppressed == nil { counted += 1 + decision.repeats.count }
        }
        #expect(counted + newest.values.reduce(0, +) == 5_000)
    }

    @Test func `the least recent fingerprint is forgotten`() {
        var policy = RepeatPolicy(reportsPerMinute: 10_000)
        for number in 0...RepeatPolicy.maximumFingerprints { _ = repeats(&policy, "f\(number)", at: UInt64(number)) }
        #expect(repeats(&policy, "f1", at: 5_000) == 0, "still known: occurrence 2")
        #expect(policy.decide("f1", lasting: 1, at: 5_001).suppressed == .repeated)
        #expect(repeats(&policy, "f0", at: 6_000) == 0, "forgotten, so occurrence 1 again")
    }

    @Test func delaysAfterFailuresGrow() {
        var retries = Retries()
        let notice = Delivery.notice("", [:])
        #expect(retries.mayTry(notice, at: 0))
        var now: UInt64 = 0
        var waits: [UInt64] = []
        for _ in 0..<11 {
            retries.failed(at: now)
            let next = retries.earliest ?? 0
            waits.append((next - now) / second)
            #expect(!retries.mayTry(notice, at: next - 1))
            now = next
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
        retries.succeeded()
        #expect(retries.mayTry(notice, at: 0))
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
