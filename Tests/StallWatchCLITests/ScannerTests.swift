import Testing

@testable import StallWatchCLI

@Suite struct ScannerTests {
    @Test(arguments: ["{}", "[]", " { \"a\" : [1, -2.5e3, true, false, null, \"\\\"\"] }\n", "0", "\"\""])
    func passesOverWhatIsJSON(text: String) throws {
        var scanner = JSONScanner(Array(text.utf8))
        try scanner.skipValue()
        try scanner.end()
    }
}
