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

    @Test func `cells that would read the same are cut in the middle`() {
        var table = TextTable([.init("function", isFlexible: true)])
        for name in ["Cache.refresh(now:)", "Cache.refresh(later:)", "Inbox.open()"] { table.add([name]) }
        let lines = table.text(for: Terminal(width: 13)).split(separator: "\n")
        #expect(lines == ["function", "Cache.…(now:)", "Cache.…ater:)", "Inbox.open()"])
    }

    @Test func `a place keeps its line number, and a width is limited only where lines are not`() {
        var table = TextTable([.init("where", isFlexible: true, minimumWidth: 10, keepsEnds: true, unlimitedWidth: 12)])
        table.add(["NoteStore.swift:88"])
        #expect(table.text(for: Terminal(width: 10)) == "where\nNoteS…t:88\n")
        #expect(table.text(for: Terminal()) == "where\nNoteSt…ft:88\n")
        #expect(table.text(for: Terminal(width: 80)) == "where\nNoteStore.swift:88\n")
    }
}
