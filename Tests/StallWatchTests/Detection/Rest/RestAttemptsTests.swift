import Testing

@testable import StallWatch

@Suite struct RestAttemptsTests {
    private let second: UInt64 = 1_000_000_000

    @Test func `attempts that fail become rare`() {
        var attempts = RestAttempts()
        var now: UInt64 = 0
        var pauses: [UInt64] = []
        for _ in 0..<9 {
            attempts.noteRefusal(at: now)
            pauses.append((attempts.next - now) / 1_000_000)
            now = attempts.next
        }
        #expect(pauses == [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000])
    }

    @Test func `a short rest counts as a failure, and a long one ends the pauses`() {
        var attempts = RestAttempts()
        attempts.noteRest(from: 0, to: second)
        #expect(attempts.next == second + RestAttempts.leastDelay)
        attempts.noteRest(from: 2 * second, to: 3 * second)
        #expect(attempts.next == 3 * second + 2 * RestAttempts.leastDelay)
        attempts.noteRest(from: 4 * second, to: 60 * second)
        #expect(attempts.next == 60 * second)
        attempts.noteRefusal(at: 61 * second)
        #expect(attempts.next == 61 * second + RestAttempts.leastDelay)
    }
}
