import Foundation
import TestSupport
import Testing

@testable import TextOutput

/// 5,000 names through each function, read back as the target's reader does.
@Suite struct EscapingTests {
    private static let names = HostileNames.make(5_000, seed: 36)

    /// What a terminal or a reader obeys, wherever it stands.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .lineSeparator
            || scalar.properties.generalCategory == .paragraphSeparator
            || [0x61c, 0x200e, 0x200f].contains(scalar.value) || 0x202a...0x202e ~= scalar.value
            || 0x2066...0x2069 ~= scalar.value
    }

    @Test func `text for a terminal has no control`() {
        for name in Self.names {
            let text = name.printable
            #expect(!text.unicodeScalars.contains(where: Self.isControl))
            #expect(text.unicodeScalars.count == name.unicodeScalars.count)
        }
        #expect("a\u{1b}[2J\u{7}\u{9b}b\u{202e}".printable == "a\u{fffd}[2J\u{fffd}\u{fffd}b\u{fffd}")
        #expect("plain é 漢".printable == "plain é 漢")
    }

    @Test func `XML has no markup, is one line and no workflow command`() {
        for name in Self.names {
            let xml = name.escapedForXML
            #expect(xml.utf8.allSatisfy { !"<>\"'\r\n\t".utf8.contains($0) })
            #expect(xml.withoutWorkflowCommands == xml, "\(xml)")
            let allowed = String(
                String.UnicodeScalarView(name.unicodeScalars.map { $0 == "\u{fffe}" ? "\u{fffd}" : $0 }))
            #expect(Self.decoded(xml) == Self.shown(allowed, keeping: "\r\n\t"), "\(xml)")
        }
    }

    @Test func `a workflow command has one line and only its own signs`() {
        for name in Self.names {
            let message = name.escapedForWorkflowMessage, property = name.escapedForWorkflowProperty
            #expect(!message.unicodeScalars.contains(where: Self.isControl))
            #expect(property.utf8.allSatisfy { !":,\n\r".utf8.contains($0) })
            #expect(Self.percentDecoded(property) == Self.shown(name, keeping: "\r\n"), "\(property)")
        }
    }

    @Test func `no line of text is a workflow command`() {
        for name in Self.names {
            for line in name.withoutWorkflowCommands.unicodeScalars.split(whereSeparator: { $0 == "\n" || $0 == "\r" })
            {
                let trimmed = String(line.drop { $0.properties.isWhitespace || Self.isControl($0) })
                #expect(!trimmed.utf8.starts(with: "::".utf8))
                #expect(trimmed.range(of: "##[", options: .literal) == nil)
            }
        }
        #expect("a\n  ::error::b\r\n##[x]".withoutWorkflowCommands == "a\n  : :error::b\r\n## [x]")
        #expect("a::b # c".withoutWorkflowCommands == "a::b # c")
    }

    @Test func `JSON without controls has the same values`() throws {
        let json = [UInt8](try JSONEncoder().encode(Self.names))
        let plain = PlainJSON.escaped(json)
        let text = String(decoding: plain, as: UTF8.self)
        #expect(!text.unicodeScalars.contains(where: Self.isControl) && text.withoutWorkflowCommands == text)
        let back = try JSONDecoder().decode([String].self, from: Data(plain))
        #expect(zip(back, Self.names).allSatisfy { $0.utf8.elementsEqual($1.utf8) } && back.count == Self.names.count)
    }

    @Test func `a code span ends only at its own quotes`() throws {
        for name in Self.names {
            let code = Array(MarkdownText.code(name).unicodeScalars)
            let quotes = code.prefix { $0 == "`" }.count
            guard quotes > 0 else { continue }
            let runs = String(String.UnicodeScalarView(code)).unicodeScalars.split { $0 != "`" }.map(\.count)
            #expect(runs.count { $0 == quotes } == 2 && runs.first == quotes && runs.last == quotes, "\(name)")
        }
    }

    /// The name with what is not shown replaced.
    private static func shown(_ name: String, keeping kept: String) -> String {
        String(
            String.UnicodeScalarView(
                name.unicodeScalars.map { isControl($0) && !kept.unicodeScalars.contains($0) ? "\u{fffd}" : $0 }))
    }

    /// The text of a workflow command, by UTF-8; Foundation's function drops a byte order mark at the beginning.
    private static func percentDecoded(_ text: String) -> String {
        var result: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let next = rest.popFirst() {
            if next == UInt8(ascii: "%"), let byte = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) {
                result.append(byte)
                rest = rest.dropFirst(2)
            } else {
                result.append(next)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The text of HTML or XML without tags, by UTF-8, in which no sign hides behind a combining mark.
    private static func decoded(_ text: String) -> String {
        let entities = [
            "lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'", "#39": "'", "#10": "\n", "#13": "\r",
            "#9": "\t", "#58": ":", "#91": "[",
        ]
        var result: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let next = rest.popFirst() {
            guard next == UInt8(ascii: "&"), let end = rest.firstIndex(of: UInt8(ascii: ";")),
                let sign = entities[String(decoding: rest[..<end], as: UTF8.self)]
            else {
                result.append(next)
                continue
            }
            result += sign.utf8
            rest = rest[(end + 1)...]
        }
        return String(decoding: result, as: UTF8.self)
    }
}

@Suite struct MarkdownTextTests {
    @Test func proseHasNoMarkup() {
        #expect(
            MarkdownText.prose("a_b*c* [x](y) <b> | `d` & ~e~ \\") == #"a\_b\*c\* \[x\](y) \<b\> \| \`d\` \& \~e\~ \\"#)
        #expect(MarkdownText.prose("two\n# lines\r\n") == "two # lines")
    }

    @Test func `prose links nothing`() {
        #expect(MarkdownText.prose("https://a.b www.a.b show. w. a/b") == #"https:\//a.b www\.a.b show. w. a/b"#)
        #expect(MarkdownText.prose("@everyone") == "@\u{2060}everyone")
    }

    @Test func `a combining mark does not hide a sign`() {
        #expect(MarkdownText.code("a`\u{301}b") == "``a`\u{301}b``")
        #expect(MarkdownText.codeCell("a|\u{301}b") == "`a\\|\u{301}b`")
        #expect(MarkdownText.prose("*\u{301}a*\u{200d}") == "\\*\u{301}a\\*\u{200d}")
        #expect(MarkdownText.block(["```\u{301}"]) == "````text\n```\u{301}\n````\n")
    }

    @Test func `a cell with an escaped bar is prose`() {
        #expect(MarkdownText.codeCell(#"a\|b"#) == #"a\\\|b"#)
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

@Suite struct GlyphsTests {
    @Test(
        arguments: [
            ([:], true), (["LC_ALL": "C"], false), (["LC_ALL": "C", "LANG": "de_DE.UTF-8"], false),
            (["LC_ALL": "", "LANG": "C.utf8"], true), (["LC_CTYPE": "POSIX", "LANG": "C.UTF-8"], false),
            (["LANG": "de_DE.ISO-8859-1"], false),
        ] as [([String: String], Bool)])
    func `the first locale that is set decides`(environment: [String: String], isUnicode: Bool) {
        #expect(LocaleCharacters.areUnicode { environment[$0] } == isUnicode)
    }

    @Test func `drawings are ASCII and names stay`() {
        #expect("├─ a\n└─ b".drawnInASCII == "|- a\n`- b")
        #expect("…and 2 more, … 3 frames, refre…".drawnInASCII == "...and 2 more, ... 3 frames, refre~")
        #expect("×3 █▓░ ▁▂▃▄▅▆▇█".drawnInASCII == "x3 #=. _.:-=+*#")
        #expect("größe()".drawnInASCII == "größe()")
    }
}

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

@Suite struct TerminalTests {
    @Test func colorIsForTerminals() {
        #expect(Terminal().style("x", .red) == "x")
        #expect(Terminal(isTerminal: true, hasColor: true).style("x", .bold, .red) == "\u{1b}[1;31mx\u{1b}[0m")
    }
}

@Suite struct TextTableTests {
    @Test func theWidestColumnIsCutFirst() {
        var table = TextTable([.init("n", .right), .init("name", isFlexible: true), .init("where", isFlexible: true)])
        table.add(["1", "abcdefghijklmnopqrst", "0123456789"])
        #expect(table.text(for: Terminal()) == "n  name                  where\n1  abcdefghijklmnopqrst  0123456789\n")
        #expect(table.text(for: Terminal(width: 27)) == "n  name          where\n1  abcdefghijk…  0123456789\n")
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
