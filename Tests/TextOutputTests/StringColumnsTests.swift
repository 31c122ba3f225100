import Testing

@testable import TextOutput

@Suite struct StringColumnsTests {
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
}
