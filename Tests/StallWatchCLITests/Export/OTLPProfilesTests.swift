import Testing

@testable import StallWatchCLI

@Suite struct OTLPProfilesTests {
    private func messages(_ bytes: [UInt8], _ field: Int) -> [[UInt8]] {
        (ProtobufReader.fields(bytes) ?? []).compactMap { found in
            if case (field, .data(let bytes)) = found { bytes } else { nil }
        }
    }

    /// The samples of all profiles.
    private func samples(_ data: [UInt8]) -> [[UInt8]] {
        messages(data, 1).flatMap { messages($0, 2) }.flatMap { messages($0, 2) }.flatMap { messages($0, 2) }
    }

    @Test func weightsAreStalledNanoseconds() throws {
        let profile = try StallProfile.fixture()
        let weights = samples(OTLPProfiles.data(profile)).map { sample in
            messages(sample, 4)[0].enumerated().reduce(0) { $0 | Int($1.element & 0x7f) << (7 * $1.offset) }
        }
        #expect(weights.count == 4)
        #expect(weights.reduce(0, +) == profile.stalls.reduce(0) { $0 + $1.microseconds } * 1_000)
    }

    @Test func isTheSameEachTime() throws {
        let profile = try StallProfile.fixture()
        #expect(OTLPProfiles.data(profile) == OTLPProfiles.data(profile))
        let profiles = messages(OTLPProfiles.data(profile), 1).flatMap { messages($0, 2) }.flatMap { messages($0, 2) }
        #expect(profiles.allSatisfy { messages($0, 7)[0].count == 16 })
    }

    @Test func everyTableBeginsWithAnEmptyElement() throws {
        let dictionary = messages(OTLPProfiles.data(try .fixture()), 2)[0]
        for table in 1...7 { #expect(messages(dictionary, table).first == []) }
    }

    @Test func timesOutOfRangeAreNoFault() throws {
        var profile = StallProfile()
        for year in ["0001", "9999"] {
            profile.add(
                try StackFixture.report(
                    300, startedAt: "\(year)-01-01T00:00:00.000000Z", [.init(at: 250, stack: ["a"])]))
        }
        #expect(samples(OTLPProfiles.data(profile)).count == 2)
    }
}
