import Glibc

/// How long the host of a virtual machine has kept CPUs of it from running: proc_stat(5)'s *steal*.
///
/// No thread sees that time on its own clocks: it is neither on a CPU then nor waiting for one.
final class StealTime {
    /// How old the state may be that a difference is taken to, in nanoseconds: the file takes 30 us to read with two CPUs,
    /// and more with each, since the kernel adds up all interrupts for it.
    static let maximumAge: UInt64 = 1_000_000_000
    /// How much of the file is read.
    ///
    /// Its first lines are of the CPUs, a hundred and more in so much; of further ones nothing is known.
    private static let bytesRead = 8_192
    /// The kernel's unit of time here, in nanoseconds: 10 ms.
    private static let tick = 1_000_000_000 / UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))

    private let file = OpenFile("/proc/stat")
    private var buffer = [UInt8](repeating: 0, count: StealTime.bytesRead)
    private var base: (time: UInt64, ticks: [UInt64]) = (0, [])

    /// Takes the state now as what ``sinceBase()`` counts from, unless there is one that is young enough.
    ///
    /// - Parameter time: Now, in monotonic nanoseconds.
    func renewBase(at time: UInt64) {
        guard base.time == 0 || time &- base.time >= Self.maximumAge else { return }
        base = (time, read())
    }

    /// The longest time, in nanoseconds, that was taken from one CPU since the base.
    ///
    /// 0 where the kernel does not tell, and on real machines.
    func sinceBase() -> UInt64 {
        let taken = zip(base.ticks, read()).map { before, now in now - min(before, now) }
        return (taken.max() ?? 0) * Self.tick
    }

    private func read() -> [UInt64] {
        guard let count = file?.read(into: &buffer),
            let lastLine = buffer[..<count].lastIndex(of: UInt8(ascii: "\n"))
        else { return [] }
        return Self.ticks(in: ByteCursor(buffer, count: lastLine + 1))
    }

    /// The ticks stolen from each CPU: the eighth number of each line of one, which is `cpu`, its number, and times.
    static func ticks(in text: ByteCursor) -> [UInt64] {
        var (text, ticks) = (text, [UInt64]())
        // The first line is the sum of all.
        guard text.skip(pastLinePrefix: "cpu ") else { return [] }
        while text.skip(pastLinePrefix: "cpu"), text.number() != nil {
            text.skipWords(7)
            guard let stolen = text.number() else { break }
            ticks.append(stolen)
        }
        return ticks
    }
}
