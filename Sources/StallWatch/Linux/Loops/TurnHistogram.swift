import LinuxSupport
import Synchronization

/// A histogram of turn durations, with constant memory and a constant relative error.
///
/// Each power of two has eight buckets, so a duration is known to within 12.5 %. All durations below 1 µs share one
/// bucket, and all from 4.8 hours on share another. Only the loop's thread writes, so a count goes up by a load and a
/// store, with no lock and no locked instruction. Any thread may read.
final class TurnHistogram: Sendable {
    private static let precision = 3
    private static let lowestPower = 10
    private static let highestPower = 44
    /// The number of buckets; the first is for durations below the range, the last for those above it.
    static let bucketCount = (highestPower - lowestPower) << precision + 2

    private let buckets = AtomicWords(count: TurnHistogram.bucketCount)
    private let busy = Atomic<UInt64>(0)

    func record(_ nanoseconds: UInt64) {
        // In bounds: `bucket(of:)` returns a number below `bucketCount` for every duration.
        let bucket = buckets.start + Self.bucket(of: nanoseconds)
        bucket.pointee.store(bucket.pointee.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        busy.store(busy.load(ordering: .relaxed) &+ nanoseconds, ordering: .relaxed)
    }

    /// The total duration of the turns that are over, in nanoseconds.
    var busyNanoseconds: UInt64 { busy.load(ordering: .relaxed) }

    /// Returns the counts and the total duration now, of which a turn that ends meanwhile may be in one only.
    func snapshot() -> Snapshot {
        let busyNanoseconds = busy.load(ordering: .relaxed)
        return Snapshot(
            counts: (0..<Self.bucketCount).map { buckets.start[$0].load(ordering: .relaxed) },
            busyNanoseconds: busyNanoseconds
        )
    }

    struct Snapshot {
        var counts: [UInt64]
        var busyNanoseconds: UInt64
    }

    static func bucket(of nanoseconds: UInt64) -> Int {
        guard nanoseconds >= 1 << lowestPower else { return 0 }
        let power = UInt64.bitWidth - 1 - nanoseconds.leadingZeroBitCount
        guard power < highestPower else { return bucketCount - 1 }
        let within = Int(truncatingIfNeeded: nanoseconds >> UInt64(power - precision)) & (1 << precision - 1)
        return (power - lowestPower) << precision + within + 1
    }

    /// Returns the first duration above a bucket, in nanoseconds; `nil` for the last bucket, which has no upper bound.
    static func upperBound(of bucket: Int) -> UInt64? {
        guard bucket < bucketCount - 1 else { return nil }
        let power = bucket >> precision + lowestPower
        let within = UInt64(bucket & (1 << precision - 1))
        return (1 << UInt64(precision) + within) << UInt64(power - precision)
    }
}

/// Words in fixed memory, all 0 at first.
///
/// `@unchecked Sendable`: the atomics are initialized before the words are shared, and deallocated with their owner.
struct AtomicWords: ~Copyable, @unchecked Sendable {
    let start: UnsafeMutablePointer<Atomic<UInt64>>
    private let count: Int

    init(count: Int) {
        self.count = count
        start = .allocate(capacity: count)
        for index in 0..<count { (start + index).initialize(to: Atomic(0)) }
    }

    deinit {
        start.deinitialize(count: count)
        start.deallocate()
    }
}

extension TurnHistogram.Snapshot {
    init(sumOf parts: [Self]) {
        self.init(counts: Array(repeating: 0, count: TurnHistogram.bucketCount), busyNanoseconds: 0)
        for part in parts {
            busyNanoseconds &+= part.busyNanoseconds
            for index in counts.indices { counts[index] &+= part.counts[index] }
        }
    }

    var turns: UInt64 { counts.reduce(0, &+) }

    /// Returns the turns since an earlier snapshot of the same histogram; all of them without one.
    func since(_ earlier: Self?) -> Self {
        guard let earlier else { return self }
        return Self(
            counts: zip(counts, earlier.counts).map { $0 &- $1 },
            busyNanoseconds: busyNanoseconds &- earlier.busyNanoseconds
        )
    }
}

/// Converts nanoseconds to milliseconds, rounded to the microsecond.
func milliseconds(_ nanoseconds: UInt64) -> Double {
    // Adding 500 ns before the division could overflow.
    let (microseconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000)
    return Double(rest < 500 ? microseconds : microseconds + 1) / 1_000
}
