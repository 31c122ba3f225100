import Glibc
import Testing

@testable import LinuxSupport

@Suite struct WallClockTests {
    @Test(arguments: [(-2, 5, 0), (0, 5, 5), (3, 5, 3_000_000_005)] as [(Int, Int, UInt64)])
    func `a time before 1970 is none`(seconds: Int, nanoseconds: Int, all: UInt64) {
        #expect(timespec(tv_sec: seconds, tv_nsec: nanoseconds).nanoseconds == all)
    }
}

@Suite struct ClockPairTests {
    /// A machine that has been suspended for 500 ns, and takes the thread's CPU for a time before some reads of the boot clock.
    private func pair(delays: [UInt64]) -> ClockPair {
        var (time, delays) = (UInt64(1_000), delays[...])
        return ClockPair {
            time += 1
            return time
        } boot: {
            time += delays.popFirst() ?? 0
            return time + 500
        }
    }

    private static let late: UInt64 = 60_000_000

    @Test func `clocks that are read together need one attempt`() {
        #expect(pair(delays: [0, Self.late]) == ClockPair(1_001, offset: 500, uncertainty: 1))
    }

    @Test(arguments: [1, 2, 3]) func `clocks that are apart are read again`(bad: Int) {
        let pair = pair(delays: Array(repeating: Self.late, count: bad))
        #expect(pair == ClockPair(1_001, offset: 500, uncertainty: 1), "the moment is that of the first reading")
    }

    @Test func `without a good attempt the best one counts, with its uncertainty`() {
        let pair = pair(delays: [Self.late, Self.late / 2, Self.late, Self.late, 0])
        #expect(pair == ClockPair(1_001, offset: 500 + Self.late / 2, uncertainty: 1 + Self.late / 2))
    }
}

extension ClockPair {
    fileprivate init(_ monotonic: UInt64, offset: UInt64, uncertainty: UInt64) {
        self.init(monotonic: { monotonic }, boot: { monotonic + offset })
        self.uncertainty = uncertainty
    }
}
