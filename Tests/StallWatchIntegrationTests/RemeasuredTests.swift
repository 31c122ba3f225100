import TestSupport
import Testing

/// Simulates hosts that take all of the CPUs or nothing.
@Suite struct RemeasuredTests {
    /// Returns the number of the last attempt, if attempt `passing` is the first that is on time.
    private func attempts(passing: Int, isStolen: Bool) async throws -> Int {
        var count = 0
        return try await remeasured(
            watchHost: { { isStolen } }, record: { _ in },
            {
                count += 1
                return count
            }, until: { $0 >= passing }
        )
    }

    @Test func aMeasurementOnTimeIsTakenOnce() async throws {
        #expect(try await attempts(passing: 1, isStolen: true) == 1)
    }

    @Test func aDisturbedMeasurementIsRepeated() async throws {
        #expect(try await attempts(passing: 3, isStolen: true) == 3)
    }

    @Test func theLastMeasurementIsAlwaysKept() async throws {
        #expect(try await attempts(passing: .max, isStolen: true) == maximumMeasurements)
    }

    @Test func anUndisturbedMeasurementIsKept() async throws {
        #expect(try await attempts(passing: 2, isStolen: false) == 1)
    }

    @Test func anErrorIsNeverRepeated() async throws {
        struct Failure: Error {}
        var count = 0
        await #expect(throws: Failure.self) {
            try await remeasured(
                watchHost: { { true } },
                {
                    count += 1
                    throw Failure()
                }, until: { false }
            )
        }
        #expect(count == 1)
    }
}
