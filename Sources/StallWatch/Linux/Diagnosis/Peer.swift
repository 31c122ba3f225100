import Glibc
import LinuxSupport
import StallReports

/// A process that a system call waits for: another one, or this one through another descriptor.
struct Peer: Equatable, Sendable {
    /// What the process has to do with the call.
    var role: StallReport.PeerRole
    /// The process; `nil` if it is not known.
    var process: Int32?
    var isThisProcess = false
    /// The thread of this process that waits in a call on the other descriptor.
    var thread: ThreadIdentity?
    /// The name in the kernel, at most 15 bytes.
    var name: String?
    /// The state letter of proc(5) of its first thread.
    var state: String?
    /// The number of its threads.
    var threads: Int?
    /// The system call that its first thread, or ``thread``, waits in.
    var call: DescribedCall?
    /// The kernel function that its first thread waits in.
    var waitChannel: String?
    /// The time since it started, in nanoseconds.
    var age: UInt64?
    /// What is not known, and why.
    var reason: String?
}

/// The answer to the question for whom a system call waits.
struct PeerAnswer: Equatable, Sendable {
    var peers: [Peer] = []
    /// The number of peers beyond ``PeerFinder/maximumPeers``.
    var omitted = 0
    /// Why there are no peers.
    var reason: String?

    /// Whether a process is known.
    var isKnown: Bool { peers.contains { $0.process != nil } }
}

extension Peer {
    /// The time by which a process may seem to start later than it did, in nanoseconds: two ticks of its start time.
    private static let startTolerance: UInt64 = 20_000_000

    /// Whether /proc/<pid>/syscall of other processes may be read without waiting for their execve(2).
    ///
    /// Before Linux 5.7 a read waits until an execve(2) of the process has ended (cred_guard_mutex).
    static func mayReadCalls(kernel release: String) -> Bool {
        let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (5, 7)
    }

    static let mayReadCalls = readSmallFile("/proc/sys/kernel/osrelease").map(mayReadCalls(kernel:)) ?? false

    /// Returns a process with what it does now.
    ///
    /// The start time is read before and after, so that all values are of one process.
    ///
    /// - Parameters:
    ///   - process: The process.
    ///   - role: What it has to do with the call.
    ///   - isConfirmed: Whether the process has been seen with the file, so that its number is not another one's.
    ///   - waitingSince: Since when the thread is known to wait, in nanoseconds of CLOCK_BOOTTIME.
    ///   - directory: The process's directory in /proc.
    ///   - now: The time, in nanoseconds of CLOCK_BOOTTIME.
    ///   - ownProcess: The id of this process.
    /// - Returns: The process; `nil` for the monitor's own helper, and if it has ended.
    static func reading(
        _ process: Int32, as role: StallReport.PeerRole, isConfirmed: Bool, waitingSince: UInt64,
        in directory: String? = nil, now: UInt64 = bootTimeNow(), ownProcess: Int32 = getpid()
    ) -> Peer? {
        var peer = Peer(role: role, process: process)
        if process == ownProcess {
            peer.isThisProcess = true
            return peer
        }
        let directory = directory ?? "/proc/\(process)"
        func stat() -> ProcStat? { readSmallFile("\(directory)/stat").flatMap(ProcStat.init) }
        guard let before = stat() else { return nil }
        // A helper shares the descriptors of this process for a moment, and its end sends no signal.
        if before.parent == ownProcess, before.exitSignal == 0 { return nil }
        let ticks = UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))
        let start = before.startTicks &* (1_000_000_000 / ticks)
        guard isConfirmed || start <= waitingSince + startTolerance else {
            peer.reason = "the process with this number started after the wait began, so it may be another one"
            return peer
        }
        peer.name = readSmallFile("\(directory)/comm").map(firstLine)
        peer.state = before.letter
        peer.threads = before.threads
        peer.age = now - min(start, now)
        peer.waitChannel = WaitChannel(readSmallFile("\(directory)/wchan").map(ByteCursor.init)).function
        peer.call = mayReadCalls ? readCall(in: directory, peer.waitChannel) : nil
        guard stat()?.startTicks == before.startTicks else { return nil }
        if peer.call == nil, peer.waitChannel == nil, ["S", "D"].contains(before.letter) {
            peer.reason = "the system does not let this process read what the other one waits in"
        }
        return peer
    }

    /// Returns the system call that a process's first thread waits in; `nil` if it waits in none, or it may not be read.
    private static func readCall(in directory: String, _ waitChannel: String?) -> DescribedCall? {
        guard let text = readSmallFile("\(directory)/syscall"),
            case .waiting(let call)? = ThreadActivity(ByteCursor(text)),
            // A program of 32 bits has other numbers.
            call.stackPointer > UInt64(UInt32.max)
        else { return nil }
        let original = call.original(waitChannel: waitChannel)
        let link =
            original.takesDescriptor
            ? readLink("\(directory)/fd/\(Int32(truncatingIfNeeded: original.argument(0)))") : nil
        return DescribedCall(original, ofOtherProcess: link)
    }
}
