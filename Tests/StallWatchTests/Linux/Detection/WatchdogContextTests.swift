import Synchronization
import Testing

@testable import StallWatch

@Suite struct WatchdogContextTests {
    /// There may be 10,000 operations, whose beginnings and ends wait for a look at them.
    @Test func `operations are read once for all loops`() {
        let reads = Atomic<Int>(0)
        let context = WatchdogContext(
            capturer: StubCapturer(), now: { 0 }, submit: { _ in }, suppressed: SuppressionCounter(), options: .init(),
            operations: {
                reads.wrappingAdd(1, ordering: .relaxed)
                return OperationsReading(names: ["feed"], began: [3, 9])
            })
        context.beginPass()
        for start in 0..<10 as Range<UInt64> {
            let found = context.operations(since: start, at: 10)
            let age: UInt64 = 20 - max(3, start) - max(9, start)
            #expect(found.count == 2 && found.names == ["feed"] && found.age == age)
        }
        #expect(reads.load(ordering: .relaxed) == 1)
        context.beginPass()
        _ = context.operations(since: 0, at: 10)
        #expect(reads.load(ordering: .relaxed) == 2)
    }
}

@Suite struct LookBudgetTests {
    @Test func `looks are made again a while after a pass that used up its time`() {
        var budget = LookBudget()
        for _ in 0..<LookBudget.freeLooks {
            #expect(budget.mayLookAgain(at: 0))
            budget.add(LookBudget.longestPass, at: 100)
        }
        #expect(!budget.mayLook)
        budget.beginPass()
        let end = 100 + LookBudget.longestPass * LookBudget.restFactor
        #expect(budget.mayLook && !budget.mayLookAgain(at: end - 1) && budget.mayLookAgain(at: end))
    }
}
