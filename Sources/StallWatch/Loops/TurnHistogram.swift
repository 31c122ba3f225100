import LinuxSupport
import Synchronization

/// How long turns took: counts in buckets that grow with the duration, so that memory is constant and the error is too.
///
/// Eight buckets for every power of two: a duration is known to within 12.5 %. Below 1 µs all share one bucket, and
/// above 4.8 hours all share another. One thread at a time writes, the loop's, so a count goes up by a load and a
/// store, with no lock and no locked instruction; any thread may read.
///
/// `@unchecked Sendable`: the atomics are made before the object is shared and given back when nobody refers to it.
final class TurnHistogram: @unchecked Sendable {
    /// Sub-buckets of a power of two, as a number of bits.
    private static let precision = 3
    /// Durations below 2^10 ns, about 1 µs, are not told apart.
    private static let lowestPower = 10
    /// Neither are those from 2^44 ns, about 4.8 hours.
    private static let highestPower = 44
    /// The first bucket is for what is below the range, the last for what is above.
    static let bucketCount = (highestPower - lowestPower) << precision + 2

    private let buckets: UnsafeMutablePointer<Atomic<UInt64>>
    private let busy = Atomic<UInt64>(0)

    init() {
        buckets = .allocate(capacity: Self.bucketCount)
        for index in 0..<Self.bucketCount { (buckets + index).initialize(to: Atomic(0)) }
    }

    deinit {
        buckets.deinitialize(count: Self.bucketCount)
        buckets.deallocate()
    }

    /// Counts a turn of `nanoseconds`.
    ///
    /// On the loop's thread only.
    func record(_ nanoseconds: UInt64) {
        // In range: `bucket` gives a number below `bucketCount` for every duration.
        let bucket = buckets + Self.bucket(of: nanoseconds)
        bucket.pointee.store(bucket.pointee.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        busy.store(busy.load(ordering: .relaxed) &+ nanoseconds, ordering: .relaxed)
    }

    /// The counts now, and the time that all turns took.
    ///
    /// Turns that end meanwhile may be in one and not in the other.
    func snapshot() -> Snapshot {
        let busyNanoseconds = busy.load(ordering: .relaxed)
        return Snapshot(
            counts: (0..<Self.bucketCount).map { buckets[$0].load(ordering: .relaxed) },
            busyNanoseconds: busyNanoseconds
        )
    }

    /// A histogram's counts at one moment.
    struct Snapshot {
        /// Turns by bucket.
        var counts: [UInt64]
        /// The time that all of them took.
        var busyNanoseconds: UInt64

        /// All turns of several histograms.
        init(sumOf parts: [Snapshot]) {
            self.init(counts: Array(repeating: 0, count: bucketCount), busyNanoseconds: 0)
            for part in parts {
                busyNanoseconds &+= part.busyNanoseconds
                for index in counts.indices { counts[index] &+= part.counts[index] }
            }
        }

        init(counts: [UInt64], busyNanoseconds: UInt64) {
            self.counts = counts
            self.busyNanoseconds = busyNanoseconds
        }
    }

    /// The bucket that a duration falls into.
    static func bucket(of nanoseconds: UInt64) -> Int {
        guard nanoseconds >= 1 << lowestPower else { return 0 }
        let power = UInt64.bitWidth - 1 - nanoseconds.leadingZeroBitCount
        guard power < highestPower else { return bucketCount - 1 }
        let within = Int(truncatingIfNeeded: nanoseconds >> UInt64(power - precision)) & (1 << precision - 1)
        return (power - lowestPower) << precision + within + 1
    }

    /// The first duration above a bucket, in nanoseconds; `nil` for the last bucket, which has no end.
    static func upperBound(of bucket: Int) -> UInt64? {
        guard bucket < bucketCount - 1 else { return nil }
        let power = bucket >> precision + lowestPower
        let within = UInt64(bucket & (1 << precision - 1))
        return (1 << UInt64(precision) + within) << UInt64(power - precision)
    }
}
