import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct OperationWatchTests {
    @Test(.timeLimit(.minutes(10))) func `an operation that is not read before the stop has a report`() {
        let records = Collected<StallRecord>()
        let watch = OperationWatch(
            ignoresDebugged: false, suppressed: SuppressionCounter(), ring: {}, submit: { records.add($0) })
        watch.registry.open()
        _ = watch.begin("feed", .milliseconds(100), nil)
        watch.registry.close()
        _ = watch.findOverdue(at: monotonicNow() + 1_000_000_000, countingFrom: 0)
        watch.stop(until: endOfPatience)
        #expect(records.all.map(\.state) == [.abandoned])
        #expect(records.all.first?.operation?.reason == "the monitor was stopped before its task could be read")
    }
}

@Suite struct OperationRegistryTests {
    private let registry = OperationRegistry()

    init() { registry.open() }

    private func begin(_ name: String = "feed", limit: UInt64, at now: UInt64) -> (slot: Int, isEarlier: Bool) {
        registry.begin(name, limit: limit, context: nil, task: 0x10, at: now)
    }

    private func findOverdue(at now: UInt64, countingFrom: UInt64 = 0, atMost most: Int = 10)
        -> OperationRegistry.Findings
    {
        registry.findOverdue(at: now, countingFrom: countingFrom, atMost: most)
    }

    @Test func `an operation is overdue at its limit and found once`() {
        _ = begin(limit: 100, at: 1_000)
        #expect(registry.nextSearch == 1_100)
        #expect(findOverdue(at: 1_099).overdue.isEmpty)
        #expect(registry.nextSearch == 1_100)
        let found = findOverdue(at: 1_100).overdue
        #expect(found.map(\.name) == ["feed"])
        #expect(found.allSatisfy(registry.isInProgress))
        #expect(findOverdue(at: 2_000).overdue.isEmpty)
        #expect(registry.nextSearch == .max)
    }

    @Test func operationsInFlightAreCountedWithTheirAgesInAStall() {
        for number in 0..<300 { _ = begin("job \(number % 6)", limit: 100_000, at: UInt64(1_000 + number)) }
        let ended = begin(limit: 100_000, at: 1_300)
        _ = registry.end(ended.slot, at: { 1_350 })
        let found = registry.read().inFlight(since: 1_200, at: 1_400)
        #expect(found.count == 300 && found.names == ["job 0", "job 1", "job 2", "job 3"])
        // 200 of them began before the stall, and the others one after another.
        #expect(found.age == 200 * 200 + (101...200).reduce(0, +))
    }

    @Test func `a long name is cut wherever it is shown`() {
        _ = begin(String(repeating: "é", count: 100_000), limit: 100, at: 1_000)
        let name = String(repeating: "é", count: 64)
        #expect(registry.read().inFlight(since: 1_000, at: 1_050).names == [name])
        #expect(findOverdue(at: 1_100).overdue.map(\.name) == [name])
    }

    @Test func anOperationThatEndsInTimeIsNeverFound() {
        let operation = begin(limit: 100, at: 1_000)
        #expect(!registry.end(operation.slot, at: { 1_050 }))
        #expect(findOverdue(at: 5_000).overdue.isEmpty)
    }

    @Test func theEndOfAnOverdueOperationIsKept() {
        let operation = begin(limit: 100, at: 1_000)
        let found = findOverdue(at: 1_100).overdue[0]
        #expect(registry.end(operation.slot, at: { 1_500 }))
        #expect(registry.takeEnded(of: [found.number]) == [found.number: 1_500])
        #expect(registry.takeEnded(of: [found.number]).isEmpty)
        // Another operation takes its place.
        #expect(begin(limit: 100, at: 1_600).slot == operation.slot)
        #expect(!registry.isInProgress(found))
    }

    /// The thread of the operations may still inspect others when one that has just been found ends.
    @Test func `an end is kept until the operation has a report`() {
        let slots = (0..<2).map { _ in begin(limit: 100, at: 1_000).slot }
        let found = findOverdue(at: 1_100).overdue.map(\.number)
        let areReported = slots.map { slot in registry.end(slot, at: { 1_500 }) }
        #expect(areReported == [true, true])
        #expect(registry.takeEnded(of: [found[0]]) == [found[0]: 1_500])
        #expect(registry.takeEnded(of: found) == [found[1]: 1_500])
    }

    @Test func `the end of an operation without a report is not kept`() {
        let slots = (0..<2).map { _ in begin(limit: 100, at: 1_000).slot }
        #expect(findOverdue(at: 1_100, atMost: 1).omitted == 1)
        let areReported = slots.map { slot in registry.end(slot, at: { 1_500 }) }
        #expect(areReported == [true, false])
    }

    @Test func onlyAnEarlierEndWakesTheWatchdog() {
        #expect(begin(limit: 100, at: 1_000).isEarlier)
        #expect(!begin(limit: 100, at: 1_001).isEarlier)
        #expect(begin(limit: 10, at: 1_002).isEarlier)
        #expect(registry.nextSearch == 1_012)
    }

    @Test func `time in which nothing counts is added to the limit`() {
        _ = begin(limit: 100, at: 1_000)
        #expect(findOverdue(at: 1_100, countingFrom: 1_050).overdue.isEmpty)
        #expect(registry.nextSearch == 1_150)
        #expect(findOverdue(at: 1_150, countingFrom: 1_050).overdue.count == 1)
    }

    @Test func whatExceedsTheReportsIsCounted() {
        for _ in 0..<1_000 { _ = begin(limit: 100, at: 1_000) }
        let found = findOverdue(at: 1_100, atMost: 3)
        #expect(found.overdue.count == 3)
        #expect(found.omitted == 997)
        #expect(findOverdue(at: 2_000).omitted == 0)
    }

    @Test func `what exceeds the registry is not watched and counted`() {
        for _ in 0..<OperationRegistry.maximumOperations { _ = begin(limit: 100, at: 1_000) }
        let operation = begin(limit: 100, at: 1_000)
        #expect(operation.slot == -1)
        #expect(!registry.end(operation.slot, at: { 1_500 }))
        #expect(registry.unwatched == 1)
    }

    @Test func `nothing is watched before the start and after the stop`() {
        let operation = begin(limit: 100, at: 1_000)
        registry.close()
        #expect(begin(limit: 100, at: 1_000).slot == -1)
        #expect(!registry.end(operation.slot, at: { 1_500 }))
        #expect(registry.unwatched == 0)
    }

    @Test func anEndlessLimitIsNeverOver() {
        #expect(!begin(limit: .max, at: 1_000).isEarlier)
        #expect(findOverdue(at: .max - 1).overdue.isEmpty)
    }
}
