import Testing

@testable import StallWatchCLI

@Suite struct OTLPAnswerTests {
    private let protobuf = "application/x-protobuf"

    @Test func anEmptyAnswerTookAll() {
        #expect(OTLPAnswer(status: 200).partialSuccess == .init())
        #expect(OTLPAnswer(status: 200, contentType: "text/plain").partialSuccess == .init())
        #expect(
            OTLPAnswer(status: 200, contentType: "application/json", body: Array("{}".utf8)).partialSuccess == .init())
    }

    @Test func rejectedRecordsAreCounted() {
        var writer = ProtobufWriter()
        writer.message(1) {
            $0.number(1, 3)
            $0.string(2, "too old")
        }
        let answer = OTLPAnswer(status: 200, contentType: protobuf, body: writer.bytes)
        #expect(answer.partialSuccess == .init(rejected: 3, message: "too old"))
    }

    @Test func aPageIsNotAnAnswerOfOTLP() {
        let page = OTLPAnswer(status: 200, contentType: "text/html", body: Array("<html>".utf8))
        #expect(page.partialSuccess == nil)
        #expect(OTLPAnswer(status: 200, contentType: protobuf, body: [0x0a, 0x7f]).partialSuccess == nil)
    }

    @Test func theMessageOfAStatusIsFound() {
        var writer = ProtobufWriter()
        writer.number(1, 3)
        writer.string(2, "field 9 is missing")
        #expect(OTLPAnswer(status: 400, contentType: protobuf, body: writer.bytes).message == "field 9 is missing")
        #expect(
            OTLPAnswer(status: 502, contentType: "text/html", body: Array("<h1>\n  Bad</h1>".utf8)).message
                == "<h1> Bad</h1>")
        #expect(OTLPAnswer(status: 0, error: "Connection refused").message == "Connection refused")
    }

    /// Messages that break off, and lengths that lie.
    @Test func brokenMessagesAreNone() {
        var writer = ProtobufWriter()
        writer.number(1, 300)
        writer.fixed(2, 7)
        writer.string(3, "abc")
        let fields = ProtobufReader.fields(writer.bytes)
        #expect(fields?.map(\.0) == [1, 2, 3])
        #expect(fields?.map(\.1) == [.number(300), .number(7), .data(Array("abc".utf8))])
        // The ends of the first and the second field.
        let whole = [0, 3, 12]
        for length in 0..<writer.bytes.count {
            #expect((ProtobufReader.fields(Array(writer.bytes.prefix(length))) != nil) == whole.contains(length))
        }
        let huge: [UInt8] = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        #expect(ProtobufReader.fields(huge) == nil)
        #expect(ProtobufReader.fields([0x00]) == nil)
        #expect(ProtobufReader.fields([0x0b]) == nil)
    }
}

extension OTLPAnswerTests {
    @Test func aVarintWithoutEndIsNone() {
        #expect(ProtobufReader.fields([UInt8](repeating: 0xff, count: 20)) == nil)
    }
}
