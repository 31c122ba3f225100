import Testing

@testable import StallReports
@testable import StallWatch

@Suite struct StallContextTests {
    private let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    @Test func `a context has what it was made of`() {
        let context = StallContext("GET /feed", ["a": "1"], traceID: trace.uppercased(), spanID: "00f067aa0ba902b7")
        #expect(context.label == "GET /feed" && context.attributes == ["a": "1"])
        #expect(context.traceID == trace && context.spanID == "00f067aa0ba902b7")
        #expect(StallContext("x").traceID == nil && StallContext("x").attributes.isEmpty)
    }

    @Test func `a scope is the current context and ends with its function`() async throws {
        #expect(StallContext.current == nil)
        let inherited = withStallContext("outer") {
            withStallContext("inner") { #expect(StallContext.current?.label == "inner") }
            #expect(StallContext.current?.label == "outer")
            return Task { StallContext.current?.label }
        }
        #expect(StallContext.current == nil)
        #expect(await inherited.value == "outer")
        struct Failure: Error {}
        #expect(throws: Failure.self) { try withStallContext("fails") { throw Failure() } }
        #expect(StallContext.current == nil)
    }

    private func label(_ bytes: [UInt8]) -> (String, isCut: Bool) {
        let text = (bytes + [0]).map { CChar(bitPattern: $0) }
        let payload = StallContext(label: text, traceID: nil, spanID: nil).storage.payload
        return (payload.label, payload.isCut)
    }

    @Test func `a text of C is cut where it is no UTF-8 or too long`() {
        #expect(label([]) == ("", false))
        #expect(label(Array("import".utf8)) == ("import", false))
        #expect(label([0x61, 0xff, 0x62]) == ("a", true))
        // A character without its end, an overlong one, and a surrogate.
        #expect(label([0x61, 0xc3]) == ("a", true))
        #expect(label([0x61, 0xc0, 0x80]) == ("a", true))
        #expect(label([0x61, 0xed, 0xa0, 0x80]) == ("a", true))
        let long = Array(repeating: UInt8(ascii: "x"), count: 128)
        #expect(label(long) == (String(repeating: "x", count: 128), false))
        #expect(label(long + [0x79]) == (String(repeating: "x", count: 128), true))
        // The limit is within a character of four bytes.
        #expect(label(Array(long.dropLast(2)) + Array("😀".utf8)) == (String(repeating: "x", count: 126), true))
        #expect(StallContext(label: nil, traceID: nil, spanID: nil).label == "")
    }

    @Test func `the functions for C may be called in any order`() {
        stallwatchPopContext()
        stallwatchPushContext(nil, nil, nil)
        stallwatchPushContext("inner", trace, "short")
        stallwatchPopContext()
        stallwatchPopContext()
        stallwatchPopContext()
    }
}
