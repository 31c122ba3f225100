import CLinux
import LinuxSupport
import StackCapture
import TestSupport
import Testing

@testable import StallReports
@testable import StallWatch

@Suite struct CompetitorsTests {
    /// Returns the competitors in the cause of a thread that spent so many of 100 ms without a CPU.
    private func reported(_ seen: StallReport.Competitors, queue: UInt64 = 90) -> StallReport.Competitors? {
        let split = TimeSplit(onCPU: 100 - queue, runQueue: queue, blocked: 0, uncertainty: 0)
        let cause = CauseRules.conclusion(from: Evidence(split: split, start: 0, competitors: seen))
        return StallReport.Cause(cause) { _, _ in 0 }.competitors
    }

    @Test func `enough threads for all CPUs are in the cause`() {
        let seen = StallReport.Competitors(own: 3, others: 4, processors: 2)
        #expect(reported(seen) == seen)
        #expect(reported(seen, queue: 10) == nil, "it computed")
        #expect(reported(.init(own: 0, others: 1, processors: 1)) != nil)
        #expect(reported(.init(own: 9, others: 0, processors: 1)) != nil)
    }

    @Test func `fewer threads than CPUs explain nothing`() {
        #expect(reported(.init(own: 0, others: 1, processors: 2)) == nil)
        #expect(reported(.init(own: 7, others: 0, processors: 8)) == nil)
    }

    @Test(arguments: [("0.52 0.58 0.59 3/442 9911\n", 3), ("0.00 0.00 0.00 0/0 0\n", 0), ("1.0 1.0", 0), ("", 0)])
    func `the ready threads of the machine are read`(text: String, count: Int) {
        #expect(StallReport.Competitors.readyThreads(text) == count)
    }

    @Test func `the least numbers of two looks count`() {
        let earlier = StallReport.Competitors(own: 0, others: 0, processors: 1)
        // `nil` where the test may not run on all CPUs.
        let first = StallReport.Competitors(beside: callingThread, among: ReadyThreads(), earlier: nil)
        let look = StallReport.Competitors(beside: callingThread, among: ReadyThreads(), earlier: earlier)
        #expect((first == nil) == (look == nil))
        guard let first, let look else { return notRun("the test may not run on all CPUs, or has too many threads") }
        #expect(look.own == 0 && look.others == 0 && look.processors > 0)
        #expect(first.own < StallReport.Competitors.maximumThreads)
    }

    @Test func `the processors of all ready threads are asked about together`() {
        let all = (0..<1_024).map { Int32($0) }
        let usable = Int(clinux_usable_processors(callingThread))
        #expect(usable > 0 && clinux_count_usable(callingThread, all, all.count) == usable)
        #expect(clinux_count_usable(callingThread, all + all, all.count * 2) == usable * 2, "two threads on each")
        #expect(clinux_count_usable(callingThread, [-1, .max], 2) == 0)
        #expect(clinux_count_usable(.max, all, all.count) == 0, "it has ended")
    }

    @Test func `a thread that has ended has no competitors`() {
        #expect(StallReport.Competitors(beside: .max, among: ReadyThreads(), earlier: nil) == nil)
    }
}
