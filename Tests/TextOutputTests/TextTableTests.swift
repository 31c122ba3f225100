import Testing

@testable import TextOutput

@Suite struct TextTableTests {
    @Test func theWidestColumnIsCutFirst() {
        var table = TextTable([.init("n", .right), .init("name", isFlexible: true), .init("where", isFlexible: true)])
        table.add(["1", "abcdefghijklmnopqrst", "0123456789"])
        #expect(table.text(for: Terminal()) == "n  name                  where\n1  abcdefghijklmnopqrst  0123456789\n")
        #expect(
            table.text(for: Terminal(width: 27)) == "n  name          where\n1  abcdefghijk…  0123456789\n"
        )
    }
}
