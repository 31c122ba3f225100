import Foundation

/// What the kernel says of the main thread.
enum MainThread {
    /// How long it has been ready to run but without a CPU since it began, in milliseconds: the second field of schedstat.
    static func readyMilliseconds() -> Double {
        let text = try? String(contentsOfFile: "/proc/self/task/\(getpid())/schedstat", encoding: .utf8)
        let fields = text?.split(separator: " ") ?? []
        return fields.count > 1 ? (Double(fields[1]) ?? 0) / 1_000_000 : 0
    }
}

extension Outcome {
    /// Judges nothing where other programs kept the main thread from stalling as it was meant to.
    ///
    /// A stall that was to be of another cause is one of starvation then, and a report that says so is right: if the
    /// thread was ready to run for half of the stall by the kernel's count, which is `milliseconds` for the whole scenario.
    mutating func forgiveStarvation(of milliseconds: Double) {
        guard let expected, expected.cause != nil, !expected.isShortOfCPU, expected.loop == "main",
            own?.cause == "cpuContention", let injected = injectedMilliseconds, milliseconds >= injected / 2
        else { return }
        unavailable = "other programs had the CPUs for \(Int(milliseconds)) ms"
    }
}

extension ExpectedReport {
    /// Whether the stall is meant to leave the thread without a CPU.
    var isShortOfCPU: Bool { cause == "cpuContention" || cause == "throttled" }
}
