import LinuxSupport
import StackCapture

/// A thread that a profile samples.
final class ProfiledThread {
    let identity: ThreadIdentity
    var allowance = StopAllowance()
    /// The time before which the thread is not stopped, in monotonic nanoseconds: it did not answer the last stop.
    var stopsFrom: UInt64 = 0
    /// The kernel's times when the profile first saw the thread; `nil` if they are not known.
    private let first: ThreadReading?
    /// The kernel's times at the end of the profile; `nil` if they are not known.
    private var final: ThreadReading?
    private let status: OpenFile?
    private var buffer = [UInt8](repeating: 0, count: 4_096)
    /// The last stack of the thread, captured while it waited, and its number of switches before that.
    private var last: (stack: CapturedStack, switches: UInt64)?

    init(_ id: Int32) {
        identity = ThreadIdentity(id)
        status = OpenFile("/proc/self/task/\(id)/status")
        first = ThreadFiles(thread: id)?.read()
    }

    /// Reads the kernel's times at the end of the profile.
    func end() { final = ThreadFiles(thread: identity.id)?.read() }

    /// The time on a CPU since the profile first saw the thread, in nanoseconds; `nil` if it is not known.
    var onCPU: UInt64? { grown(\.onCPU) }

    /// The time in which the thread waited for a CPU since then, in nanoseconds; `nil` if it is not known.
    var runQueue: UInt64? { final?.showsRunQueue == true ? grown(\.runQueue) : nil }

    private func grown(_ value: (ThreadReading) -> UInt64) -> UInt64? {
        guard let first, let final, value(final) >= value(first) else { return nil }
        return value(final) - value(first)
    }

    /// A thread's state at one moment.
    struct Activity: Equatable {
        /// Whether the thread waits in the kernel.
        var isWaiting: Bool
        /// The number of times that it has left the CPU; `nil` if the system does not show it.
        var switches: UInt64?
    }

    /// Returns the thread's state; `nil` if the thread has ended, or the system does not show it.
    func activity() -> Activity? {
        guard let count = status?.read(into: &buffer), count > 0 else { return nil }
        var cursor = ByteCursor(buffer, count: count)
        guard cursor.skip(pastLinePrefix: "State:"), let state = cursor.next else { return nil }
        let voluntary = cursor.skip(pastLinePrefix: "voluntary_ctxt_switches:") ? cursor.number() : nil
        let involuntary = cursor.skip(pastLinePrefix: "nonvoluntary_ctxt_switches:") ? cursor.number() : nil
        let switches = voluntary.flatMap { voluntary in involuntary.map { voluntary &+ $0 } }
        return Activity(
            isWaiting: state == UInt8(ascii: "S") || state == UInt8(ascii: "D"), switches: switches)
    }

    /// Returns the last stack if the thread has provably not run since it was captured.
    func unchangedStack(_ activity: Activity) -> CapturedStack? {
        guard activity.isWaiting, let switches = activity.switches, let last, last.switches == switches else {
            return nil
        }
        return last.stack
    }

    /// Remembers a stack.
    ///
    /// - Parameters:
    ///   - stack: The stack; `nil` if there is none.
    ///   - activity: The thread's state before the capture.
    func remember(_ stack: CapturedStack?, _ activity: Activity?) {
        last = nil
        guard let stack, stack.method == .read, let activity, activity.isWaiting, let switches = activity.switches
        else {
            return
        }
        last = (stack, switches)
    }
}
