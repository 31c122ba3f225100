/// A reason for suppression: the monitor counts a delay over the threshold, and does not report it.
public enum SuppressionReason: String, Codable, Sendable, CaseIterable {
    /// The whole process was stopped, by SIGSTOP, the cgroup freezer or a paused virtual machine.
    ///
    /// The watchdog was late itself, and had not been waiting for a CPU.
    case processStopped
    /// The host of the virtual machine ran other machines on its CPUs (steal, proc_stat(5)), so the watchdog was late.
    ///
    /// Turns get a grace period of a fifth of the threshold, at most 50 ms, before they count as stalls.
    case cpuStolen
    /// The machine was suspended.
    case suspended
    /// A debugger was attached to the loop's thread.
    case debugger
    /// The app had paused the monitor, or the loop was in an ignored scope.
    case paused
    /// The thread that runs the loop had ended.
    case threadEnded
    /// The stall repeated a reported one, and was not occurrence 1, 2, 4, 8, … of its fingerprint.
    case repeated
    /// The monitor had reached the limit of reports per minute.
    case rateLimit
}
