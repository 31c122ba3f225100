import StackCapture
import Glibc
import LinuxSupport
import StallReports

typealias Peer = StallReport.Peer

struct PeerAnswer: Equatable, Sendable {
    var peers: [Peer] = []
    var omitted = 0
    var reason: String?

    var isKnown: Bool { peers.contains { $0.pid != nil } }
}

extension Peer {
    /// Whether /proc/<pid>/syscall may be read: before Linux 5.7 that waits for execve(2) to end (cred_guard_mutex).
    static func mayReadCalls(kernel release: String) -> Bool {
        let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (5, 7)
    }

    static let mayReadCalls = readSmallFile("/proc/sys/kernel/osrelease").map(mayReadCalls(kernel:)) ?? false

    /// Returns a process with what it does now; `nil` for the monitor's own helper, and if it has ended.
    ///
    /// The start time is read before and after, so that all values are of one process. One that was not seen with the
    /// file (`isConfirmed`) has only a name and an age, and may be another since the wait began (`waitingSince`).
    /// Times are nanoseconds of CLOCK_BOOTTIME.
    static func reading(
        _ process: Int32, as role: StallReport.PeerRole, isConfirmed: Bool, waitingSince: UInt64,
        in directory: String? = nil, now: UInt64 = bootTimeNow(), ownProcess: Int32 = getpid()
    ) -> Peer? {
        var peer = Peer(role: role, pid: process)
        if process == ownProcess {
            peer.isThisProcess = true
            return peer
        }
        let directory = directory ?? "/proc/\(process)"
        func stat() -> ProcStat? { readSmallFile("\(directory)/stat").flatMap(ProcStat.init) }
        guard let before = stat() else { return nil }
        // A helper shares the descriptors of this process for a moment, and its end sends no signal.
        if before.parent == ownProcess, before.exitSignal == 0 { return nil }
        guard isConfirmed || !before.isYounger(than: waitingSince) else {
            peer.reason = "which started after the wait began, so it may be another one"
            return peer
        }
        peer.name = readSmallFile("\(directory)/comm").map(firstLine)
        peer.runningMilliseconds = milliseconds(now - min(before.startedAt, now))
        // What a process does explains nothing if the wait may be for another one.
        if isConfirmed {
            peer.state = before.letter
            peer.threads = before.threads
            peer.waitChannel = readSmallFile("\(directory)/wchan").flatMap(WaitChannel.function(in:))
            if mayReadCalls { peer.readCall(in: directory) }
        }
        guard stat()?.startTicks == before.startTicks else { return nil }
        if isConfirmed, peer.systemCall == nil, peer.waitChannel == nil, ["S", "D"].contains(before.letter) {
            peer.reason = "the system does not let this process read what the other one waits in"
        }
        return peer
    }

    /// Reads the system call that the process's first thread waits in, if it waits in one and that may be read.
    private mutating func readCall(in directory: String) {
        guard let text = readSmallFile("\(directory)/syscall"),
            case .waiting(let call)? = ThreadActivity(systemCallFile: text),
            // A program of 32 bits has other numbers.
            call.stackPointer > UInt64(UInt32.max)
        else { return }
        let original = call.original(waitChannel: waitChannel)
        systemCall = original.name
        guard original.takesDescriptor else { return }
        target = readLink("\(directory)/fd/\(Int32(truncatingIfNeeded: original.argument(0)))")
    }
}
