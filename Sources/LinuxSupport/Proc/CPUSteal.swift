import Glibc

/// A reading of each CPU's steal time (proc_stat(5)).
///
/// That is the time in which the host of a virtual machine did not run the virtual machine's CPU. A thread's own clocks
/// do not include it: the thread is neither on a CPU then nor waiting for one.
package struct CPUSteal: Sendable {
    /// The share of stolen time above which a measurement says little about the measured program.
    ///
    /// A host that shares a CPU takes it for some 10 ms each time.
    package static let disturbingShare = 0.01
    /// The kernel's unit of steal time, in nanoseconds: usually 10 ms.
    private static let tick = 1_000_000_000 / UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))

    /// The time of the reading, in nanoseconds of the monotonic clock.
    package let time: UInt64
    /// The steal time of each CPU; empty if the kernel does not provide it.
    private let ticks: [UInt64]

    /// Reads /proc/stat.
    ///
    /// Takes 50 us with two CPUs, and more with each further one: the kernel adds up all interrupts for the same file.
    package init() {
        self.init(readSmallFile("/proc/stat") ?? "", at: monotonicNow())
    }

    /// Parses the text of /proc/stat.
    ///
    /// - Parameters:
    ///   - text: The text. The line of a CPU has `cpu`, the CPU's number, and times, of which steal is the eighth.
    ///   - time: The time of the reading, in nanoseconds of the monotonic clock.
    package init(_ text: String, at time: UInt64) {
        var (cursor, ticks) = (ByteCursor(text), [UInt64]())
        // The first line is the sum over all CPUs.
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

    /// Whether the kernel provides steal time.
    package var hasValues: Bool { !ticks.isEmpty }

    /// Returns the time stolen from the most affected CPU until a later reading, in nanoseconds.
    package func longest(until end: CPUSteal) -> UInt64 {
        (taken(until: end).max() ?? 0) * Self.tick
    }

    /// Returns the share of all CPUs' time stolen until a later reading, 0 to 1.
    package func share(until end: CPUSteal) -> Double {
        let whole = Double(end.time &- time) * Double(ticks.count)
        guard whole > 0 else { return 0 }
        return min(Double(taken(until: end).reduce(0, +) * Self.tick) / whole, 1)
    }

    /// Whether the share stolen since this reading is above ``disturbingShare``.
    ///
    /// Reads /proc/stat again.
    package var isDisturbing: Bool { share(until: CPUSteal()) > Self.disturbingShare }

    private func taken(until end: CPUSteal) -> [UInt64] {
        zip(ticks, end.ticks).map { before, after in after - min(before, after) }
    }
}
