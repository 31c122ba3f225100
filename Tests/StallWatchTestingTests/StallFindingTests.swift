import Testing

@testable import StallWatchTesting

@Suite struct StallBudgetTests {
    private func time(_ least: Double, _ most: Double? = nil) -> CodeTime {
        var time = CodeTime(exactly: least)
        time.most = most ?? least
        return time
    }

    @Test func `a stall fails the test at exactly the limit`() {
        let budget = StallBudget(fail: .milliseconds(100))
        #expect(budget.severity(of: time(100)) == .error)
        #expect(budget.severity(of: time(99.9)) == nil)
    }

    @Test func `a stall between the limits is a warning`() {
        let budget = StallBudget(warn: .milliseconds(50), fail: .milliseconds(100))
        #expect(budget.severity(of: time(49)) == nil)
        #expect(budget.severity(of: time(50)) == .warning)
        #expect(budget.severity(of: time(99)) == .warning)
        #expect(budget.severity(of: time(100)) == .error)
    }

    @Test func `a stall that may be the machine's does not fail the test`() {
        #expect(StallBudget(fail: .milliseconds(100)).severity(of: time(60, 140)) == nil)
        let budget = StallBudget(warn: .milliseconds(50), fail: .milliseconds(100))
        #expect(budget.severity(of: time(40, 140)) == .warning)
    }

    @Test func `a stall of one of several tests is an error only if it is one for each`() {
        let strict = StallBudget(fail: .milliseconds(100))
        let lax = StallBudget(fail: .milliseconds(500))
        #expect(StallBudget.severity(of: time(600), inOneOf: [strict, lax]) == .error)
        #expect(StallBudget.severity(of: time(200), inOneOf: [strict, lax]) == .warning)
        #expect(StallBudget.severity(of: time(90), inOneOf: [strict, lax]) == nil)
        #expect(StallBudget.severity(of: time(600), inOneOf: []) == nil)
    }
}
