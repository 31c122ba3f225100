import Testing

@testable import StallWatchCLI

@Suite struct HangClockTests {
    /// Asks a clock at each time, and returns the times at which a hang is due.
    private func due(_ clock: inout HangClock, at times: [UInt64]) -> [UInt64] {
        var due: [UInt64] = []
        for time in times where clock.isDue(at: time) { due.append(time) }
        return due
    }

    @Test func `a time without progress is one hang`() {
        var clock = HangClock(limit: 30, now: 100)
        #expect(clock.nextDecision(after: 100) == 130)
        #expect(due(&clock, at: [129, 130, 131, 500]) == [130])
        #expect(clock.nextDecision(after: 500) == 530)
    }

    @Test func `progress begins another time`() {
        var clock = HangClock(limit: 30, now: 100)
        clock.noteProgress(at: 120)
        #expect(due(&clock, at: [130, 150]) == [150])
        clock.noteProgress(at: 160)
        #expect(clock.nextDecision(after: 161) == 190)
        #expect(due(&clock, at: [189, 190]) == [190])
    }

    @Test func `a decision that comes late is due at once`() {
        let clock = HangClock(limit: 30, now: 100)
        #expect(clock.nextDecision(after: 400) == 400)
    }
}
