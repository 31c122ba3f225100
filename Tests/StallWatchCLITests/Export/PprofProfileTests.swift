import Testing

@testable import StallWatchCLI

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

@Suite struct GzipFileTests {
    @Test func emptyAndLong() {
        #expect(
            GzipFile.data([]) == [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]
        )
        let long = GzipFile.data([UInt8](repeating: 7, count: 70_000))
        #expect(long[10..<15] == [0, 0xff, 0xff, 0, 0])
        #expect(long.count == 10 + 5 + 65_535 + 5 + 4_465 + 8)
    }
}
