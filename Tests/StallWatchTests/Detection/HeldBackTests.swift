import Foundation
import Testing

@testable import StallWatch

@Suite struct HeldBackCountsTests {
    private func decoded(_ json: String) throws -> HeldBackCounts {
        try JSONDecoder().decode(HeldBackCounts.self, from: Data(json.utf8))
    }

    @Test func everyReasonIsCountedByItself() {
        let counter = HeldBackCounter()
        counter.add(.paused)
        counter.add(.debugger)
        counter.add(.paused)
        for reason in HeldBackReason.allCases {
            #expect(counter.current[reason] == (reason == .paused ? 2 : reason == .debugger ? 1 : 0))
        }
    }

    @Test func everyReasonIsWrittenAlsoWhereItWasNeverTheCase() throws {
        var counts = HeldBackCounts()
        counts[.suspended] = 3
        let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(counts))
        let object = try #require(json as? [String: Int])
        #expect(Set(object.keys) == Set(HeldBackReason.allCases.map(\.rawValue)))
        #expect(object["suspended"] == 3)
        #expect(object.values.reduce(0, +) == 3)
    }

    @Test func countsComeBackFromTheirJSON() throws {
        var counts = HeldBackCounts()
        counts[.paused] = 7
        #expect(try JSONDecoder().decode(HeldBackCounts.self, from: JSONEncoder().encode(counts)) == counts)
        counts[.paused] = 0
        #expect(counts == HeldBackCounts())
    }

    @Test func aReasonOfAnotherVersionIsKept() throws {
        let counts = try decoded(#"{"moonPhase": 2, "paused": 1, "debugger": 0}"#)
        #expect(counts[.paused] == 1)
        #expect(counts[.debugger] == 0)
        let json = String(decoding: try JSONEncoder().encode(counts), as: UTF8.self)
        #expect(json.contains(#""moonPhase":2"#))
    }
}
