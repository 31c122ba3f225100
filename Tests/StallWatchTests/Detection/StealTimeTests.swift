import Foundation
import Testing

@testable import StallWatch

@Suite struct StealTimeTests {
    private static let text = """
        cpu  7000 72 688 64942 986 0 182 30 4 5
        cpu0 3500 36 344 32471 493 0 91 10 2 3
        cpu12 3500 36 344 32471 493 0 91 20 2 2
        intr 123 45 0 0
        ctxt 1
        """

    @Test func eachCPUHasItsOwn() {
        #expect(StealTime.ticks(in: ByteCursor(Self.text)) == [10, 20])
    }

    /// What lxcfs and sandboxes put in the file's place need not have all numbers.
    @Test(arguments: ["", "cpu  1 2 3\n", "cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3 4\n", "cpu 1\ncpus\n", "intr 5\n"])
    func whatIsNotThereIsNotStolen(text: String) {
        #expect(StealTime.ticks(in: ByteCursor(text)).isEmpty)
    }

    /// This machine's own file, beside what Foundation reads of it.
    @Test func thisMachineTellsOfEachOfItsCPUs() throws {
        let text = try String(contentsOfFile: "/proc/stat", encoding: .utf8)
        let lines = text.split(separator: "\n").filter { $0.wholeMatch(of: /cpu\d.*/) != nil }
        #expect(StealTime.ticks(in: ByteCursor(text)).count == lines.count)
        #expect(!lines.isEmpty)
    }

    @Test func nothingIsStolenSinceNow() {
        let stolen = StealTime()
        #expect(stolen.sinceBase() == 0, "without a base")
        stolen.renewBase(at: monotonicNow())
        #expect(stolen.sinceBase() < 1_000_000_000)
    }
}
