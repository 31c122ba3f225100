import Foundation
import Testing

/// How much of the CPUs' time a virtual machine's host has given to others since this was made.
///
/// What is late then is late for a reason that no program in the machine can see or mend: a test that judges by the clock
/// says so instead of failing.
package struct StolenTime {
    /// From this share on nothing can be said of times: a host that takes turns takes some 10 ms each time.
    package static let limit = 0.01

    private let begun = Self.read()

    package init() {}

    /// Whether it was more than ``limit``.
    package var isTooMuch: Bool {
        let now = Self.read()
        return Double(now.stolen - begun.stolen) > Self.limit * Double(max(now.all - begun.all, 1))
    }

    /// Judges by the clock: what fails in `body` is a known issue, if too much was stolen before it.
    ///
    /// For a test that has other expectations too, which hold whatever the host does. Where all of them are of the clock
    /// there is ``RepeatedWhileCPUIsStolen``.
    package func excuses(_ body: () -> Void) {
        withKnownIssue("the host gave this machine's CPUs to others", isIntermittent: true) {
            body()
        } when: {
            isTooMuch
        }
    }

    /// The first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal.
    private static func read() -> (stolen: Int, all: Int) {
        let text = (try? String(contentsOfFile: "/proc/stat", encoding: .utf8)) ?? ""
        let times = text.prefix { $0 != "\n" }.split(separator: " ").dropFirst().prefix(8).compactMap { Int($0) }
        return (times.count == 8 ? times[7] : 0, times.reduce(0, +))
    }
}
