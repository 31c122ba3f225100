import Foundation
import TestSupport
import Testing

@testable import StallReports

@Suite struct ReportIdentifierTests {
    private func make(at microseconds: Int64, seed: UInt64 = 0) -> String {
        var generator = SeededGenerator(seed: seed)
        return ReportIdentifier.make(
            at: Timestamp(microsecondsSince1970: microseconds), random: (generator.next(), generator.next())
        )
    }

    /// RFC 9562: 48 bits of milliseconds, the version 7, 12 random bits, the variant 10, 62 random bits.
    @Test func theFieldsHaveTheirBitPositions() throws {
        for seed in 0..<200 as Range<UInt64> {
            let id = make(at: 1_795_248_000_123_456, seed: seed)
            #expect(id == id.lowercased())
            let bytes = try #require(UUID(uuidString: id)).uuid
            let milliseconds = [bytes.0, bytes.1, bytes.2, bytes.3, bytes.4, bytes.5].reduce(0) { $0 << 8 | Int($1) }
            #expect(milliseconds == 1_795_248_000_123)
            #expect(bytes.6 >> 4 == 7)
            #expect(bytes.8 >> 6 == 0b10)
        }
    }

    @Test func idsSortByTime() {
        let ids = (0..<100).map { make(at: 1_795_248_000_000_000 + Int64($0) * 1_000, seed: UInt64(1_000 - $0)) }
        #expect(ids == ids.sorted())
    }

    @Test func idsOfOneMillisecondDiffer() {
        let ids = (0..<1_000).map { make(at: 0, seed: UInt64($0)) }
        #expect(Set(ids).count == ids.count)
    }

    @Test(arguments: [Int64.min, -1, 0, .max])
    func anyTimeGivesAValidUUID(microseconds: Int64) {
        #expect(UUID(uuidString: make(at: microseconds)) != nil)
    }
}
