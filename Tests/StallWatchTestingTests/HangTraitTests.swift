import LinuxSupport
import Testing

@testable import StallWatchTesting

@Suite struct HangTimerTests {
    @Test func `a test that ends in time is not reported`() throws {
        let timer = try HangTimer(limit: .max / 4) { _ in HangTimer.Hang(text: "hang") }
        #expect(timer.end() == nil)
    }

    @Test func `a test that does not end is reported once`() throws {
        let reported = Semaphore()
        let timer = try HangTimer(limit: 0) { _ in
            defer { reported.post() }
            return HangTimer.Hang(text: "hang")
        }
        try #require(reported.wait(until: monotonicNow() + 30_000_000_000))
        // The thread keeps the text right after it has reported.
        while timer.end() == nil { nap() }
        #expect(timer.end()?.text == "hang")
        #expect(!reported.wait(until: monotonicNow()))
    }
}
