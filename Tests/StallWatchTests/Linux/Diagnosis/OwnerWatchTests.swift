import Testing

@testable import StallWatch

@Suite struct OwnerWatchTests {
    /// Creates a reading of an owner, with times in milliseconds.
    private func reading(
        at time: UInt64, cpu: UInt64, queue: UInt64 = 0, state: Character = "R", switches: UInt64 = 0, nice: Int32? = 10
    ) -> ThreadReading {
        ThreadReading(
            time: time * 1_000_000, onCPU: cpu * 1_000_000, runQueue: queue * 1_000_000, state: state.asciiValue ?? 0,
            minorFaults: 0, majorFaults: 0, userTicks: 0, systemTicks: 0, nice: nice, voluntarySwitches: switches,
            activity: state == "R" ? .running : .blocked)
    }

    @Test func `an owner of lower priority without a CPU is an inversion`() throws {
        // schedstat counts a wait for a CPU when it ends.
        let readings = [reading(at: 100, cpu: 5), reading(at: 300, cpu: 8), reading(at: 600, cpu: 12, queue: 200)]
        let time = try #require(OwnerTime(readings, waiterNice: 0))
        #expect(time.split.duration == 500_000_000 && time.split.onCPU == 7_000_000)
        #expect(time.split.runQueue == 493_000_000 && time.isPriorityInversion)
        #expect(OwnerTime(readings, waiterNice: 10)?.isPriorityInversion == false)
        #expect(OwnerTime(readings, waiterNice: nil)?.isPriorityInversion == false)
    }

    @Test func `an owner that computes or sleeps is none`() throws {
        let computing = OwnerTime([reading(at: 100, cpu: 5), reading(at: 600, cpu: 305, queue: 90)], waiterNice: 0)
        #expect(computing?.isPriorityInversion == false && computing?.split.runQueue == 200_000_000)
        let sleeping = OwnerTime(
            [reading(at: 100, cpu: 5, state: "S"), reading(at: 600, cpu: 6, queue: 3, state: "S", switches: 2)],
            waiterNice: 0)
        #expect(sleeping?.isPriorityInversion == false && sleeping?.split.blocked == 496_000_000)
    }

    @Test func `half of the time is enough`() {
        func isInversion(_ queue: UInt64) -> Bool? {
            OwnerTime(
                [reading(at: 100, cpu: 5), reading(at: 600, cpu: 6, queue: queue, switches: 1)], waiterNice: 0
            )?.isPriorityInversion
        }
        #expect(isInversion(250) == true && isInversion(249) == false)
    }

    @Test func `one reading, or no schedstat, says nothing`() {
        var last = reading(at: 600, cpu: 6, queue: 400)
        #expect(OwnerTime([last], waiterNice: 0) == nil && OwnerTime([], waiterNice: 0) == nil)
        last.showsRunQueue = false
        #expect(OwnerTime([reading(at: 100, cpu: 5), last], waiterNice: 0) == nil)
        let unknown = [reading(at: 100, cpu: 5, nice: nil), reading(at: 600, cpu: 6, nice: nil)]
        #expect(OwnerTime(unknown, waiterNice: 0)?.isPriorityInversion == false)
    }
}
