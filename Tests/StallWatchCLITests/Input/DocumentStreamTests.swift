import Testing

@testable import StallWatchCLI

@Suite struct DocumentStreamTests {
    /// Returns the documents of a text that is read in pieces of `size` bytes, with their lines.
    private func documents(_ text: String, size: Int, isLines: Bool = false, limit: Int = 1_000) throws -> [String] {
        var left = Array(text.utf8)[...]
        let stream = DocumentStream(isLines: isLines, limit: limit) { _ in
            defer { left = left.dropFirst(size) }
            return Array(left.prefix(size))
        }
        var documents: [String] = []
        while let document = try stream.next() {
            documents.append("\(document.line):\(String(decoding: document.bytes, as: UTF8.self))")
        }
        return documents
    }

    @Test(arguments: [1, 2, 3, 7, 100]) func oneDocumentPerLine(size: Int) throws {
        #expect(
            try documents("{\"a\":1}\n\n{\"b\":2}\n{\"c\":3}", size: size) == [
                "1:{\"a\":1}", "3:{\"b\":2}", "4:{\"c\":3}",
            ])
        #expect(try documents("{\"a\"\n{\"b\":2}\n", size: size, isLines: true) == ["1:{\"a\"", "2:{\"b\":2}"])
        // A broken line is one.
        #expect(
            try documents("{\"a\":1}\nrubbish\n{\"c\":3}\n", size: size) == ["1:{\"a\":1}", "2:rubbish", "3:{\"c\":3}"])
    }

    @Test(arguments: [1, 2, 3, 7, 100]) func documentsOneAfterAnother(size: Int) throws {
        let text = "{\n \"a\": [\n{}\n]\n}\n{\n \"b\": 2\n} {\"c\":\n3}\n"
        #expect(try documents(text, size: size) == ["1:{\n \"a\": [\n{}\n]\n}", "6:{\n \"b\": 2\n}", "8:{\"c\":\n3}"])
    }

    @Test(arguments: [1, 2, 3, 7, 100]) func aBrokenDocumentDoesNotHideTheNext(size: Int) throws {
        let text = "{\n \"a\": [1,\n{\n \"b\": 2\n}\nrubbish\n{\n \"c\": 3\n}\n"
        let found = try documents(text, size: size)
        #expect(found.first?.hasPrefix("1:{\n \"a\": [1,") == true)
        #expect(found.contains("7:{\n \"c\": 3\n}"))
        #expect(found.count <= 4)
    }

    @Test(arguments: [1, 5, 64, 1_000]) func aTooLongDocumentIsCut(size: Int) throws {
        let long = "{\"a\":\"" + String(repeating: "x", count: 500) + "\"}"
        let lines = try documents("{\"b\":1}\n\(long)\n{\"c\":2}\n", size: size, limit: 100)
        #expect(lines.count == 3)
        #expect(lines[0] == "1:{\"b\":1}" && lines[1].utf8.count == 2 + 101 && lines[2] == "3:{\"c\":2}")
        let documents = try documents("{\n\"b\":1}\n\(long)\n{\n\"c\":2}\n", size: size, limit: 100)
        #expect(documents.count == 3)
        #expect(documents.last == "4:{\n\"c\":2}")
    }

    @Test(arguments: ["", "\n\n \t\n"]) func blankInputHasNoDocument(text: String) throws {
        #expect(try documents(text, size: 3).isEmpty)
    }
}
