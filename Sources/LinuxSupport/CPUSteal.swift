import Glibc

/// How long the host of a virtual machine had kept each of its CPUs from running at one moment: proc_stat(5)'s *steal*.
///
/// No thread sees that time on its own clocks: it is neither on a CPU then nor waiting for one.
package struct CPUSteal: Sendable {
    /// From this share of the time on, what was measured says little of who was measured.
    ///
    /// A host that takes turns takes some 10 ms each time.
    package static let disturbingShare = 0.01
    /// The kernel's unit of time here, in nanoseconds: 10 ms.
    private static let tick = 1_000_000_000 / UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))

    /// When it was read, in nanoseconds of the monotonic clock.
    package let time: UInt64
    /// By CPU; empty where the kernel does not tell.
    private let ticks: [UInt64]

    /// Reads it.
    ///
    /// That takes 50 us with two CPUs, and more with each: the kernel adds up all interrupts for the same file.
    package init() {
        self.init(readSmallFile("/proc/stat") ?? "", at: monotonicNow())
    }

    /// - Parameters:
    ///   - text: The text of /proc/stat: of each CPU a line of `cpu`, its number, and times, of which this is the eighth.
    ///   - time: When it was read.
    package init(_ text: String, at time: UInt64) {
        var (cursor, ticks) = (ByteCursor(text), [UInt64]())
        // The first line is the sum of all.
        if cursor.skip(pastLinePrefix: "cpu ") {
            while cursor.skip(pastLinePrefix: "cpu"), cursor.number() != nil {
                cursor.skipWords(7)
                guard let stolen = cursor.number() else { break }
                ticks.append(stolen)
            }
        }
        self.ticks = ticks
        self.time = time
    }

    /// The longest time, in nanoseconds, that was taken from one CPU until another moment.
    package func longest(until end: CPUSteal) -> UInt64 {
        (taken(until: end).max() ?? 0) * Self.tick
    }

    /// The share of all CPUs' time that was taken until another moment, 0 to 1.
    package func share(until end: CPUSteal) -> Double {
        let whole = Double(end.time &- time) * Double(ticks.count)
        guard whole > 0 else { return 0 }
        return min(Double(taken(until: end).reduce(0, +) * Self.tick) / whole, 1)
    }

    /// Whether more than ``disturbingShare`` was taken since.
    package var isDisturbing: Bool { share(until: CPUSteal()) > Self.disturbingShare }

    private func taken(until end: CPUSteal) -> [UInt64] {
        zip(ticks, end.ticks).map { before, after in after - min(before, after) }
    }
}
