import Foundation
import StallWatchTesting
import Synchronization
import Testing

@Suite(.noStalls(over: .seconds(1)), .serialized) struct NotRunTests {
    /// Runs first: no timer of the main run loop is due yet.
    @Test func aTimerOfAQueueFires() async throws {
        let fired = Fired()
        let timer = DispatchSource.makeTimerSource(queue: .main)
        timer.setEventHandler { fired.set() }
        timer.schedule(deadline: .now() + .milliseconds(20))
        timer.resume()
        try await fired.wait(for: 3)
        #expect(fired.isSet)
    }

    @Test func bTimerOfTheMainRunLoopDoesNot() async throws {
        let fired = Fired()
        RunLoop.main.add(Timer(timeInterval: 0.02, repeats: false) { _ in fired.set() }, forMode: .default)
        try await fired.wait(for: 6)
        #expect(!fired.isSet)
    }

    /// The timer of the test before is still due, which has been said.
    @Test func cLaterTestIsSilent() async throws {
        try await Task.sleep(for: .seconds(4))
    }
}

private final class Fired: Sendable {
    private let flag = Atomic<Bool>(false)
    var isSet: Bool { flag.load(ordering: .acquiring) }
    func set() { flag.store(true, ordering: .releasing) }

    /// Waits for at most so many seconds, and for all of them if nothing fires.
    func wait(for seconds: Int) async throws {
        for _ in 0..<seconds * 10 where !isSet { try await Task.sleep(for: .milliseconds(100)) }
    }
}

/// A test that is over before the loop has been looked at twice.
@Suite(.noStalls(over: .seconds(1))) struct ShortTests {
    @Test func aTimerOfTheMainRunLoopDoesNotFireSoon() async throws {
        let fired = Fired()
        RunLoop.main.add(Timer(timeInterval: 0.02, repeats: false) { _ in fired.set() }, forMode: .default)
        try await fired.wait(for: 1)
        #expect(!fired.isSet)
    }
}
