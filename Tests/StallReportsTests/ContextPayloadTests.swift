import Testing
import TestSupport

@testable import StallReports

@Suite struct ContextPayloadTests {
    private let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    /// As the watchdog copies it: the whole block.
    private func block(_ payload: ContextPayload) -> [UInt8] {
        let bytes = payload.bytes
        return bytes + [UInt8](repeating: 0xaa, count: ContextPayload.byteCount - bytes.count)
    }

    @Test func `what was written is read`() throws {
        let payload = ContextPayload(
            label: "GET /feed", attributes: ["b": "2", "a": "1"], traceID: trace, spanID: "00f067aa0ba902b7")
        let read = try #require(ContextPayload(copied: block(payload)))
        #expect(read == payload && read.label == "GET /feed" && !read.isCut)
        #expect(read.attributes.map(\.key) == ["a", "b"] && read.attributes.map(\.value) == ["1", "2"])
        #expect(read.traceID.map { hexadecimal($0) } == trace && read.spanID?.count == 8)
        let empty = try #require(ContextPayload(copied: block(ContextPayload(label: ""))))
        #expect(empty.label == "" && empty.attributes.isEmpty && empty.traceID == nil && empty.spanID == nil)
    }

    @Test func `the largest payload fits`() throws {
        let attributes = Dictionary(
            uniqueKeysWithValues: (0..<20).map {
                ("\($0)" + String(repeating: "k", count: 40), String(repeating: "ü", count: 60))
            })
        let payload = ContextPayload(label: String(repeating: "l", count: 500), attributes: attributes)
        #expect(payload.bytes.count <= ContextPayload.byteCount)
        let read = try #require(ContextPayload(copied: block(payload)))
        #expect(
            read.isCut && read.label.utf8.count == 128 && read.attributes.count == 8 && read.omittedAttributes == 12)
        #expect(read.attributes.allSatisfy { $0.key.utf8.count == 32 && $0.value.utf8.count == 64 })
        #expect(ContextPayload(label: "", attributes: attributes).omittedAttributes == 12)
    }

    @Test(arguments: [
        (128, 128, false), (129, 128, true), (0, 0, false),
    ])
    func `a label is cut at its limit`(length: Int, kept: Int, isCut: Bool) {
        let payload = ContextPayload(label: String(repeating: "x", count: length))
        #expect(payload.label.utf8.count == kept && payload.isCut == isCut)
    }

    @Test func `a label is cut between characters`() {
        // 127 bytes, and a character of two.
        let payload = ContextPayload(label: String(repeating: "x", count: 127) + "üy")
        #expect(payload.label == String(repeating: "x", count: 127) && payload.isCut)
        // One character of more bytes than the limit.
        let tower = "e" + String(repeating: "\u{301}", count: 100)
        #expect(ContextPayload(label: tower).label == "" && ContextPayload(label: tower).isCut)
    }

    @Test(arguments: [
        "", "4bf9", "4bf92f3577b34da6a3ce929d0e0e473g", "+4bf92f3577b34da6a3ce929d0e0e473",
        String(repeating: "0", count: 32),
    ])
    func `what is no trace id is none`(text: String) {
        #expect(ContextPayload(label: "", traceID: text).traceID == nil)
    }

    /// Every byte in use counts: a copy with one of them changed is no payload.
    @Test func `a damaged copy is none`() throws {
        let payload = ContextPayload(label: "GET /feed", attributes: ["route": "/feed"], traceID: trace)
        let whole = block(payload)
        for index in payload.bytes.indices {
            var damaged = whole
            damaged[index] ^= 0x40
            #expect(ContextPayload(copied: damaged) == nil, "byte \(index)")
        }
        for count in 0..<payload.bytes.count { #expect(ContextPayload(copied: Array(whole.prefix(count))) == nil) }
        #expect(ContextPayload(copied: [UInt8](repeating: 0, count: ContextPayload.byteCount)) == nil)
    }

    /// Half of one context and half of another, as if it had been copied while it was written.
    @Test func `a torn copy is none`() {
        var random = SeededGenerator(seed: 20)
        let labels = (0..<50).map { "GET /route/\($0)" }
        for _ in 0..<10_000 {
            guard let one = labels.randomElement(using: &random), let other = labels.randomElement(using: &random),
                one != other, one.count == other.count
            else { continue }
            let (first, second) = (block(ContextPayload(label: one)), block(ContextPayload(label: other)))
            let at = Int.random(in: 9..<40 + one.utf8.count, using: &random)
            let torn = Array(first[..<at] + second[at...])
            if torn != first, torn != second { #expect(ContextPayload(copied: torn) == nil) }
        }
    }
}

@Suite struct ContextWordsTests {
    @Test func `a context is one line`() {
        let context = StallReport.Context(
            taskID: 12, taskName: "feed", label: "GET /feed", traceID: "4bf9", spanID: "00f0",
            attributes: ["b": "2", "a": "1"], isCut: true, omittedAttributes: 1)
        #expect(
            context.inWords == "GET /feed, task 12 \"feed\", trace 4bf9, span 00f0, a=1, b=2, 1 more attribute, cut")
        #expect(StallReport.Context(taskID: 3).inWords == "task 3")
        #expect(StallReport.Context(label: "", omittedAttributes: 2).inWords == "(empty label), 2 more attributes")
    }

    @Test func `a context is grouped by its label, else by its task's name`() {
        #expect(StallReport.Context(taskName: "feed", label: "GET /feed").name == "GET /feed")
        #expect(StallReport.Context(taskName: "feed").name == "feed")
        #expect(StallReport.Context(taskID: 3).name == nil)
    }
}
