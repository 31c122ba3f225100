import Testing

@testable import StallWatchCLI

@Suite struct MarkdownTextTests {
    @Test func proseHasNoMarkup() {
        #expect(
            MarkdownText.prose("a_b*c* [x](y) <b> | `d` & ~e~ \\") == #"a\_b\*c\* \[x\](y) \<b\> \| \`d\` \& \~e\~ \\"#)
        #expect(MarkdownText.prose("two\n# lines\r\n") == "two # lines")
    }

    @Test func codeSpansMayHaveBackticks() {
        #expect(MarkdownText.code("f(_:)") == "`f(_:)`")
        #expect(MarkdownText.code("a`b``c") == "```a`b``c```")
        #expect(MarkdownText.code("`a`") == "`` `a` ``")
        #expect(MarkdownText.code("") == "")
        #expect(MarkdownText.codeCell("a || b") == #"`a \|\| b`"#)
    }

    @Test func aBlockIsLongerThanItsFences() {
        #expect(MarkdownText.block(["a", "````", "b"]) == "`````text\na\n````\nb\n`````\n")
        #expect(MarkdownText.block(["a"]) == "```text\na\n```\n")
    }

    @Test func aTableHasARuleForEachColumn() {
        let table = MarkdownText.table(["name", "count"], right: [1], [["a", "1"], ["b", "2"]])
        #expect(table == "| name | count |\n| --- | ---: |\n| a | 1 |\n| b | 2 |\n")
    }
}
