import Testing

@testable import StallWatch

@Suite struct PauseStateTests {
    private let pauses = PauseState()

    @Test func withoutAPauseEverythingCounts() {
        #expect(pauses.countingFrom(at: 500) == 0)
    }

    @Test func timeBeforeTheEndOfAPauseDoesNotCount() {
        pauses.begin()
        #expect(pauses.countingFrom(at: 500) == 500)
        pauses.end(at: 600)
        #expect(pauses.countingFrom(at: 700) == 600)
    }

    @Test func pausesNest() {
        pauses.begin()
        pauses.begin()
        pauses.end(at: 600)
        #expect(pauses.countingFrom(at: 700) == 700)
        pauses.end(at: 800)
        #expect(pauses.countingFrom(at: 900) == 800)
    }
}
