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
