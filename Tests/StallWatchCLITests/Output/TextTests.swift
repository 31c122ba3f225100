import Testing

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

    @Test func widthsCountColumns() {
        #expect("naïve".columns == 5)
        #expect("漢字".columns == 4)
        #expect("漢字漢字".truncated(to: 5) == "漢字…")
        #expect("abc".truncated(to: 3) == "abc")
        #expect("abcd".truncated(to: 3) == "ab…")
        #expect("漢".padded(to: 4, .right) == "  漢")
    }

    @Test func controlCharactersAreReplaced() {
        #expect("a\u{1b}[2J\u{7}\u{9b}b\u{202e}".printable == "a\u{fffd}[2J\u{fffd}\u{fffd}b\u{fffd}")
        #expect("plain é 漢".printable == "plain é 漢")
    }

    @Test func colorIsForTerminals() {
        #expect(Terminal().style("x", .red) == "x")
        #expect(Terminal(isTerminal: true, hasColor: true).style("x", .bold, .red) == "\u{1b}[1;31mx\u{1b}[0m")
    }

    @Test func theWidestColumnIsCutFirst() {
        var table = TextTable([.init("n", .right), .init("name", isFlexible: true), .init("where", isFlexible: true)])
        table.add(["1", "abcdefghijklmnopqrst", "0123456789"])
        #expect(table.text(for: Terminal()) == "n  name                  where\n1  abcdefghijklmnopqrst  0123456789\n")
        #expect(
            table.text(for: Terminal(width: 27)) == "n  name          where\n1  abcdefghijk…  0123456789\n"
        )
    }

    @Test func theBarFits() {
        #expect(
            ProgressBar.text("reading", done: 5, total: 10, columns: 40) == "reading ███████████░░░░░░░░░░░░   50 %"
        )
        for columns in 1...100 {
            #expect(ProgressBar.text("reading", done: 3, total: 7, columns: columns).columns < columns)
        }
    }
}
