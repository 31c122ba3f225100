import Testing

@testable import StallWatch

/// Creates a reading with times in milliseconds.
private func reading(
    at time: UInt64, cpu: UInt64, queue: UInt64 = 0, state: Character = "S", switches: UInt64 = 0, waited: UInt64 = 0
) -> ThreadReading {
    ThreadReading(
        time: time * 1_000_000, onCPU: cpu * 1_000_000, runQueue: queue * 1_000_000,
        state: state.asciiValue ?? 0, minorFaults: 0, majorFaults: 0, userTicks: 0, systemTicks: 0,
        voluntarySwitches: switches, involuntarySwitches: 0, activity: state == "R" ? .running : .faulting,
        loopWaited: waited * 1_000_000
    )
}

private func timeSplit(_ readings: [ThreadReading], from start: UInt64, to end: UInt64) -> TimeSplit? {
    TimeSplit(readings: readings, from: start * 1_000_000, to: end * 1_000_000)
}

@Suite struct TimeSplitTests {
    @Test func readingsAtBothEndsAreExact() throws {
        let split = try #require(
            timeSplit([reading(at: 100, cpu: 5, queue: 1), reading(at: 400, cpu: 105, queue: 51)], from: 100, to: 400)
        )
        #expect(split.onCPU == 100_000_000)
        #expect(split.runQueue == 50_000_000)
        #expect(split.blocked == 150_000_000)
        #expect(split.uncertainty == 0)
    }

    @Test func `without schedstat a mixed stall has an uncertain split`() throws {
        func split(_ first: Character, _ last: Character, switches: UInt64?) throws -> TimeSplit {
            var readings = [
                reading(at: 0, cpu: 0, state: first, switches: 3), reading(at: 100, cpu: 20, state: last, switches: 3),
            ]
            for index in readings.indices { readings[index].showsRunQueue = false }
            readings[1].voluntarySwitches = switches
            return try #require(timeSplit(readings, from: 0, to: 100))
        }
        #expect(try split("S", "S", switches: 3).uncertainty == 0)
        #expect(try split("S", "S", switches: 4).uncertainty == 80_000_000)
        #expect(try split("S", "S", switches: nil).uncertainty == 80_000_000)
        #expect(try split("R", "R", switches: 3).runQueue == 80_000_000)
        #expect(try split("R", "R", switches: 3).uncertainty == 0)
        #expect(try split("R", "S", switches: 4).uncertainty == 80_000_000)
    }

    @Test func `without a count of switches a ready thread may have waited`() throws {
        var readings = [reading(at: 0, cpu: 0, state: "R"), reading(at: 100, cpu: 20, queue: 5, state: "R")]
        for index in readings.indices { readings[index].voluntarySwitches = nil }
        #expect(try #require(timeSplit(readings, from: 0, to: 100)).runQueue == 5_000_000)
    }

    @Test func aRunnableThreadsRestIsRunQueueTime() throws {
        // schedstat shows a wait for a CPU only when it ends.
        let split = try #require(
            timeSplit([reading(at: 0, cpu: 0, state: "R"), reading(at: 100, cpu: 20, state: "R")], from: 0, to: 100)
        )
        #expect(split.runQueue == 80_000_000)
        #expect(split.blocked == 0)
    }

    /// CPU steal takes half of the first part; none of the thread's clocks shows it.
    @Test func aLaterWaitDoesNotHideCPUSteal() throws {
        let readings = [
            reading(at: 0, cpu: 0, state: "R"), reading(at: 100, cpu: 50, state: "R"),
            reading(at: 200, cpu: 50, switches: 1),
        ]
        let split = try #require(timeSplit(readings, from: 0, to: 200))
        #expect(split.onCPU == 50_000_000)
        #expect(split.runQueue == 50_000_000)
        #expect(split.blocked == 100_000_000)
    }

    @Test func aWaitForACPUCountsOnce() throws {
        // The wait continues at the second reading, when schedstat does not show it yet, and ends 10 ms later.
        let readings = [
            reading(at: 0, cpu: 0, state: "R"), reading(at: 100, cpu: 60, state: "R"),
            reading(at: 200, cpu: 100, queue: 50, switches: 1),
        ]
        let split = try #require(timeSplit(readings, from: 0, to: 200))
        #expect(split.onCPU == 100_000_000)
        #expect(split.runQueue == 50_000_000)
        #expect(split.blocked == 50_000_000)
    }

    @Test func anIdleLoopsWorkBelongsToTheTurn() throws {
        let readings = [
            reading(at: 0, cpu: 0), reading(at: 900, cpu: 0), reading(at: 1_040, cpu: 40), reading(at: 1_100, cpu: 40),
        ]
        let split = try #require(timeSplit(readings, from: 1_000, to: 1_100))
        #expect(split.onCPU == 40_000_000)
        #expect(split.uncertainty == 40_000_000)
    }

    @Test func aBusyLoopsEarlierWorkIsSubtracted() throws {
        // The thread was on a CPU for all of the time before the turn, and for none of the turn.
        let readings = [
            reading(at: 0, cpu: 0), reading(at: 100, cpu: 100), reading(at: 180, cpu: 150), reading(at: 300, cpu: 150),
        ]
        let split = try #require(timeSplit(readings, from: 150, to: 300))
        #expect(split.onCPU == 0)
        #expect(split.blocked == 150_000_000)
        #expect(split.uncertainty == 30_000_000)
    }

    @Test func earlierWaitsOfTheLoopAreNotBusyTime() throws {
        // A busy turn until 100 ms, a wait of 298 ms, a turn of 2 ms, and the late turn from 400 ms on.
        let readings = [
            reading(at: 0, cpu: 0), reading(at: 100, cpu: 50), reading(at: 650, cpu: 300, waited: 298),
            reading(at: 1_000, cpu: 300, waited: 298),
        ]
        let split = try #require(timeSplit(readings, from: 400, to: 1_000))
        #expect(split.onCPU == 249_000_000)
        #expect(split.blocked == 351_000_000)
        #expect(split.uncertainty == 1_000_000)
    }

    @Test func aTurnWithoutAReadingInsideIsBounded() throws {
        let split = try #require(timeSplit([reading(at: 0, cpu: 0), reading(at: 100, cpu: 30)], from: 20, to: 90))
        #expect(split.onCPU <= 30_000_000)
        #expect(split.onCPU >= split.uncertainty - min(split.uncertainty, split.onCPU))
    }

    /// The loop's first turn, during which the monitor starts.
    @Test(arguments: [("R", 100, 120), ("R", 20, 60), ("S", 100, 40), ("S", 20, 40)] as [(Character, UInt64, UInt64)])
    func theFirstReadingsStateHoldsForTheTimeBefore(state: Character, cpu: UInt64, onCPU: UInt64) throws {
        let readings = [reading(at: 80, cpu: cpu, state: state), reading(at: 200, cpu: cpu + 40, switches: 1)]
        let split = try #require(timeSplit(readings, from: 0, to: 200))
        #expect(split.onCPU == onCPU * 1_000_000)
        #expect(split.blocked == (200 - onCPU) * 1_000_000)
        #expect(split.uncertainty == min(cpu, 80) * 1_000_000)
    }

    @Test func withoutReadingsThereIsNoSplit() {
        #expect(timeSplit([], from: 0, to: 100) == nil)
    }

    @Test func thePartsAlwaysAddUp() throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<10_000 {
            var time: UInt64 = 0
            var cpu: UInt64 = 0
            var queue: UInt64 = 0
            let readings = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
                time += .random(in: 0...100, using: &generator)
                cpu += .random(in: 0...150, using: &generator)
                queue += .random(in: 0...150, using: &generator)
                return reading(
                    at: time, cpu: cpu, queue: queue, state: Bool.random(using: &generator) ? "R" : "S",
                    switches: .random(in: 0...1, using: &generator)
                )
            }
            let start = UInt64.random(in: 0...200, using: &generator)
            let end = start + .random(in: 0...300, using: &generator)
            let split = try #require(timeSplit(readings, from: start, to: end))
            #expect(split.duration == (end - start) * 1_000_000)
            #expect(split.uncertainty <= split.duration)
        }
    }
}
