import Testing

@testable import StallReports

@Suite struct StallWatchErrorTests {
    @Test func theDescriptionEndsWithTheSystemsMessage() {
        let error = StallWatchError(.unwritableReports, "the disk", errno: 28)
        #expect(error.description == "the disk: No space left on device")
    }

    @Test func withoutAnErrorNumberTheDescriptionIsTheMessage() {
        #expect(StallWatchError(.stopped, "the monitor has been stopped").description == "the monitor has been stopped")
    }

    @Test func differentCodesAreNotEqual() {
        #expect(StallWatchError.Code.stopped == .stopped)
        #expect(StallWatchError.Code.stopped != .alreadyStarted)
        #expect(StallWatchError.Code.alreadyWatched.description == "alreadyWatched")
    }
}
