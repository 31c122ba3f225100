import Testing

@testable import StallWatch

@Suite struct DeadlockSearchTests {
    @Test func `threads that wait for each other`() {
        #expect(DeadlockSearch.deadlocked([1: 2, 2: 1]) == [1, 2])
        #expect(DeadlockSearch.deadlocked([1: 2, 2: 3, 3: 1, 4: 5]) == [1, 2, 3])
    }

    @Test func `a thread that waits for itself`() {
        #expect(DeadlockSearch.deadlocked([7: 7]) == [7])
    }

    @Test func `a thread that waits for a deadlocked one cannot go on`() {
        #expect(DeadlockSearch.deadlocked([9: 1, 1: 2, 2: 1]) == [1, 2, 9])
    }

    @Test func `a chain that ends is no deadlock`() {
        #expect(DeadlockSearch.deadlocked([1: 2, 2: 3]).isEmpty)
        #expect(DeadlockSearch.deadlocked([:]).isEmpty)
    }
}
