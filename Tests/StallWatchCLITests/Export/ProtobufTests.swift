import Testing

@testable import StallWatchCLI

@Suite struct ProtobufWriterTests {
    /// The examples of the encoding's own documentation.
    @Test func wireFormat() {
        var writer = ProtobufWriter()
        writer.number(1, 150)
        writer.string(2, "testing")
        writer.numbers(6, [3, 270, 86_942])
        #expect(
            writer.bytes == [
                0x08, 0x96, 0x01, 0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67, 0x32, 0x06, 0x03, 0x8e, 0x02,
                0x9e,
                0xa7, 0x05,
            ]
        )
    }

    @Test func edges() {
        var writer = ProtobufWriter()
        writer.number(1, 0)
        writer.numbers(2, [])
        #expect(writer.bytes.isEmpty)
        writer.string(3, "")
        #expect(writer.bytes == [0x1a, 0x00])
        var negative = ProtobufWriter()
        negative.number(1, -1)
        #expect(negative.bytes == [0x08] + [UInt8](repeating: 0xff, count: 9) + [0x01])
    }
}
