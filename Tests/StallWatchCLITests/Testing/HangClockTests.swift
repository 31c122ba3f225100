import Testing

@testable import StallWatchCLI

@Suite struct HangClockTests {
    @Test func `a time without progress is one hang`() {
        var clock = HangClock(limit: 30, now: 100)
        #expect(clock.nextDecision(after: 100) == 130)
        #expect(!clock.isDue(at: 129))
        #expect(clock.isDue(at: 130))
        #expect(!clock.isDue(at: 500), "it is reported already")
        #expect(clock.nextDecision(after: 500) == 530)
    }

    @Test func `progress begins another time`() {
        var clock = HangClock(limit: 30, now: 100)
        clock.noteProgress(at: 120)
        #expect(!clock.isDue(at: 130))
        #expect(clock.isDue(at: 150))
        clock.noteProgress(at: 160)
        #expect(clock.nextDecision(after: 161) == 190)
        #expect(clock.isDue(at: 190))
    }

    @Test func `a decision that comes late is due at once`() {
        let clock = HangClock(limit: 30, now: 100)
        #expect(clock.nextDecision(after: 400) == 400)
    }
}
