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
}
