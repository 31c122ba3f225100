import Testing
import TextOutput

@testable import StallWatchCLI

@Suite struct TextTests {
    @Test(
        arguments: [
            (0, "0 ms"), (0.25, "0.250 ms"), (12.4, "12 ms"), (999.4, "999 ms"), (999.6, "1.00 s"), (1_250, "1.25 s"),
            (61_000, "1 min 1 s"), (3_599_600, "1 h 0 min"), (7_500_000, "2 h 5 min"),
        ] as [(Double, String)])
    func durations(milliseconds: Double, text: String) { #expect(milliseconds.duration == text) }

    @Test(
        arguments: [(1.005, 1, "1.0"), (-0.25, 1, "-0.3"), (12, 0, "12"), (0.05, 2, "0.05"), (1e300, 2, "1e+300")]
            as [(Double, Int, String)])
    func numbers(value: Double, digits: Int, text: String) { #expect(value.fixed(digits) == text) }

    @Test func theBarFits() {
        #expect(
            ProgressBar.text("reading", done: 5, total: 10, columns: 40) == "reading ███████████░░░░░░░░░░░░   50 %"
        )
        for columns in 1...100 {
            #expect(ProgressBar.text("reading", done: 3, total: 7, columns: columns).columns < columns)
        }
    }
}
