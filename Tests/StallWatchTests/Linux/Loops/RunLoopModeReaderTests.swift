import Testing

@testable import StallWatch

@Suite struct ClockLeadTests {
    private static let second: UInt64 = 1_000_000_000

    /// A timer for 3,610 s by the monotonic clock, set at 10 s, when the clock of dates was 1,000 s ahead.
    @Test func `a clock of dates that is set forward makes no timer due`() {
        var lead = ClockLead()
        lead.add(date: 1_010, at: 10 * Self.second)
        #expect(lead.due(4_610) == 3_610 * Self.second)
        lead.add(date: 8_211, at: 11 * Self.second)
        #expect(lead.due(4_610) == 3_610 * Self.second, "it was set before")
        lead.add(date: 12, at: 12 * Self.second)
        #expect(lead.due(4_610) == 4_610 * Self.second, "it may have been set since")
    }

    @Test func `dates of long ago and far away are times, too`() {
        var lead = ClockLead()
        lead.add(date: 1_010, at: 10 * Self.second)
        #expect(lead.due(-6e10) == 0)
        #expect(lead.due(6e10) == 1_000_000_000 * Self.second)
        #expect(lead.due(.nan) == 1_000_000_000 * Self.second)
    }
}
