import Foundation
import Testing

@testable import StallReports
@testable import StallWatch

@Suite struct SuppressionCountsTests {
    private func decoded(_ json: String) throws -> SuppressionCounts {
        try JSONDecoder().decode(SuppressionCounts.self, from: Data(json.utf8))
    }

    @Test func everyReasonIsCountedByItself() {
        let counter = SuppressionCounter()
        counter.add(.paused)
        counter.add(.debugger)
        counter.add(.paused)
        for reason in SuppressionReason.allCases {
            #expect(counter.current[reason] == (reason == .paused ? 2 : reason == .debugger ? 1 : 0))
        }
    }

    @Test func reasonsWithoutACountAreWrittenAsZero() throws {
        var counts = SuppressionCounts()
        counts[.suspended] = 3
        let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(counts))
        let object = try #require(json as? [String: Int])
        #expect(Set(object.keys) == Set(SuppressionReason.allCases.map(\.rawValue)))
        #expect(object["suspended"] == 3)
        #expect(object.values.reduce(0, +) == 3)
    }

    @Test func countsSurviveARoundTripThroughJSON() throws {
        var counts = SuppressionCounts()
        counts[.paused] = 7
        #expect(try JSONDecoder().decode(SuppressionCounts.self, from: JSONEncoder().encode(counts)) == counts)
        counts[.paused] = 0
        #expect(counts == SuppressionCounts())
    }

    @Test func aReasonOfAnotherVersionIsKept() throws {
        let counts = try decoded(#"{"moonPhase": 2, "paused": 1, "debugger": 0}"#)
        #expect(counts[.paused] == 1)
        #expect(counts[.debugger] == 0)
        let json = String(decoding: try JSONEncoder().encode(counts), as: UTF8.self)
        #expect(json.contains(#""moonPhase":2"#))
    }
}
