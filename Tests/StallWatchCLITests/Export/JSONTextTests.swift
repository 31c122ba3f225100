import Foundation
import Testing

@testable import StallWatchCLI

@Suite struct JSONTextTests {
    @Test func everyKindOfValue() {
        let value = JSONText.Value.object([
            ("a", .null), ("b", .bool(true)), ("c", .int(-3)), ("d", .array([.string("x"), .ints([1, 2])])),
            ("e", .indices([0, nil])), ("f", .strings([])), ("g", .optional(nil as String?)),
        ])
        #expect(
            JSONText(value).text
                == #"{"a":null,"b":true,"c":-3,"d":["x",[1,2]],"e":[0,null],"f":[],"g":null}"#
        )
    }

    @Test(arguments: [
        (0, "0"), (1, "0.001"), (-1, "-0.001"), (1_500, "1.5"), (1_000, "1"), (-2_050, "-2.05"),
        (9_007_199_254_740_993, "9007199254740.993"),
    ])
    func millisecondsAreExact(microseconds: Int, text: String) {
        #expect(JSONText(.milliseconds([microseconds])).text == "[\(text)]")
    }

    @Test func everyTextIsReadBackUnchanged() throws {
        for text in ["", "\"\\/", "a\nb\t\u{0}\u{1f}\u{7f}", "é🙂\u{2028}", "</script><!-- &amp;"] {
            for escapesMarkup in [false, true] {
                let bytes = JSONText(.strings([text]), escapesMarkup: escapesMarkup).bytes
                #expect(try JSONDecoder().decode([String].self, from: Data(bytes)) == [text])
            }
        }
    }

    @Test func noTextEndsAScriptElement() {
        let text = JSONText(.string("</script><!--<script>&"), escapesMarkup: true).text
        #expect(!text.contains("<") && !text.contains(">") && !text.contains("&"))
    }
}
