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

@Suite struct GzipFileTests {
    /// The published check value of CRC-32: the checksum of the digits 1 to 9.
    @Test func checksum() {
        #expect(GzipFile.checksum(Array("123456789".utf8)) == 0xcbf4_3926)
        #expect(GzipFile.checksum([]) == 0)
    }

    @Test func emptyAndLong() {
        #expect(
            GzipFile.data([]) == [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]
        )
        let long = GzipFile.data([UInt8](repeating: 7, count: 70_000))
        #expect(long[10..<15] == [0, 0xff, 0xff, 0, 0])
        #expect(long.count == 10 + 5 + 65_535 + 5 + 4_465 + 8)
    }
}

@Suite struct PprofProfileTests {
    @Test func isTheSameEachTime() throws {
        let profile = try StallProfile.fixture()
        #expect(PprofProfile.data(profile, exporter: "test") == PprofProfile.data(profile, exporter: "test"))
    }

    @Test func timesOutOfRangeAreLeftOut() throws {
        var profile = StallProfile()
        for year in ["0001", "9999"] {
            profile.add(
                try StackFixture.report(
                    300, startedAt: "\(year)-01-01T00:00:00.000000Z", [.init(at: 250, stack: ["a"])])
            )
        }
        #expect(!PprofProfile.data(profile, exporter: "test").isEmpty)
    }
}
