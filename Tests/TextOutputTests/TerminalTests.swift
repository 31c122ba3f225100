import Testing

@testable import TextOutput

@Suite struct TerminalTests {
    @Test func colorIsForTerminals() {
        #expect(Terminal().style("x", .red) == "x")
        #expect(Terminal(isTerminal: true, hasColor: true).style("x", .bold, .red) == "\u{1b}[1;31mx\u{1b}[0m")
    }
}
