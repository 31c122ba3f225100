import StallReports
import TestSupport
import Testing

@testable import StallWatch

@Suite struct ProfileClockTests {
    private func plan(_ seconds: Int, _ hertz: Int) throws -> ProfilePlan {
        try #require(ProfilePlan(seconds: seconds, hertz: hertz))
    }

    @Test func `there is one sample in each interval, in time`() throws {
        var generator = SeededGenerator(seed: 1)
        var clock = ProfileClock(try plan(2, 50), begin: 1_000)
        var now: UInt64 = 1_000
        for index in 0..<100 {
            let time = try #require(clock.nextSample(at: now, &generator))
            #expect((time - 1_000) / 20_000_000 == UInt64(index))
            #expect(time >= now)
            now = time
        }
        #expect(clock.nextSample(at: now, &generator) == nil)
        #expect(clock.missed == 0)
        #expect(clock.end == 2_000_001_000)
    }

    @Test func `a late profiler leaves out what is over, and counts it`() throws {
        var generator = SeededGenerator(seed: 2)
        var clock = ProfileClock(try plan(1, 10), begin: 0)
        _ = clock.nextSample(at: 0, &generator)
        let time = try #require(clock.nextSample(at: 450_000_000, &generator))
        #expect((400_000_000..<500_000_000).contains(time))
        #expect(clock.missed == 3)
        #expect(clock.nextSample(at: 5_000_000_000, &generator) == nil)
        #expect(clock.missed == 8)
    }

    /// Work that repeats in step with the sampling: 7, 2 and 1 ms, twice in each interval of 20 ms.
    ///
    /// Samples at equal
    /// distances would all see the same function.
    @Test func `work in step with the sampling has its shares`() throws {
        var generator = SeededGenerator(seed: 3)
        var clock = ProfileClock(try plan(300, 50), begin: 0)
        var counts = [0, 0, 0]
        var now: UInt64 = 0
        while let time = clock.nextSample(at: now, &generator) {
            now = time
            let phase = time % 10_000_000
            counts[phase < 7_000_000 ? 0 : phase < 9_000_000 ? 1 : 2] += 1
        }
        let points = counts.map { Double($0) / 150 }
        // 15,000 samples: a standard deviation of 0.37 points at most.
        #expect(zip(points, [70.0, 20, 10]).allSatisfy { abs($0 - $1) < 1.5 }, "\(points)")
    }

    @Test func `the numbers of a plan have bounds`() {
        #expect(ProfilePlan(seconds: 0, hertz: 50) == nil && ProfilePlan(seconds: 301, hertz: 50) == nil)
        #expect(ProfilePlan(seconds: 1, hertz: 0) == nil && ProfilePlan(seconds: 1, hertz: 101) == nil)
    }
}
