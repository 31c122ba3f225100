import Testing
import TextOutput

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
