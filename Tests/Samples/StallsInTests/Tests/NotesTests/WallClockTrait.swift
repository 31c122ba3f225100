import Dispatch
import Foundation
import Testing

/// A plain check with the wall clock, to compare with: the time that an empty block waits for the main queue.
///
/// It records no issue. It prints the longest wait.
struct WallClockTrait: TestTrait, SuiteTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let pings = Pings()
        pings.start()
        defer { print("wall clock: \(test.name) \(Int(pings.stop())) ms") }
        try await function()
    }
}

extension Trait where Self == WallClockTrait {
    static var wallClock: Self { Self() }
}

/// Sends the main queue an empty block every 25 ms.
private final class Pings: @unchecked Sendable {
    // Sendable: the lock protects the state.
    private let lock = NSLock()
    private var isOver = false
    private var longest = 0.0
    private var sent: ContinuousClock.Instant?

    func start() {
        Thread.detachNewThread { [self] in
            while send() { usleep(25_000) }
        }
    }

    /// Ends the check and returns the longest wait in milliseconds, with one that still lasts.
    func stop() -> Double {
        lock.withLock {
            isOver = true
            if let sent { note(sent) }
            return longest
        }
    }

    private func send() -> Bool {
        lock.withLock {
            guard !isOver else { return false }
            guard sent == nil else { return true }
            sent = .now
            DispatchQueue.main.async { [self] in
                lock.withLock {
                    if let sent { note(sent) }
                    sent = nil
                }
            }
            return true
        }
    }

    private func note(_ sent: ContinuousClock.Instant) {
        longest = max(longest, (.now - sent) / .milliseconds(1))
    }
}
