extension StallReport {
    /// A process for which a system call waited: another one, or this one through another descriptor.
    package struct Peer: Codable, Sendable, Equatable {
        package var role: PeerRole
        package var pid: Int32?
        package var isThisProcess: Bool?
        /// The thread of this process that was blocked in ``systemCall``, if ``isThisProcess``; `nil` if it is not known.
        package var thread: ThreadDescription?
        /// The process's name in the kernel, at most 15 bytes.
        package var name: String?
        /// The state of its first thread, a letter of proc_pid_stat(5): `R`, `S`, `D`, `T`, `t`, `Z`, `X` or `I`.
        package var state: String?
        package var threads: Int?
        /// The system call in which its first thread was blocked; `nil` if there was none, or it may not be read.
        package var systemCall: String?
        /// What the peer's system call acts on: a path, a socket or a time; `nil` if that is not known.
        package var target: String?
        package var waitChannel: String?
        /// The time since the process started, in milliseconds, in steps of 10 ms.
        package var runningMilliseconds: Double?
        package var reason: String?
    }

    /// What a process has to do with a system call that waits for it.
    package typealias PeerRole = Word<Peer>
}

extension StallReport.PeerRole {
    /// It held the file lock.
    package static var holder: Self { Self(rawValue: "holder") }
    /// It held a lease on the file.
    package static var leaseHolder: Self { Self(rawValue: "leaseHolder") }
    /// It had the other end of the Unix socket open.
    package static var otherEnd: Self { Self(rawValue: "otherEnd") }
    /// It had the pipe open for writing.
    package static var writer: Self { Self(rawValue: "writer") }
    /// It had the pipe open for reading.
    package static var reader: Self { Self(rawValue: "reader") }
    package static var child: Self { Self(rawValue: "child") }
}

extension StallReport.Cause {
    /// The calls that wait for processes: the thread's own, or that of the last owner of the lock that it waits for.
    package var callsWithPeers: [StallReport.SystemCall] {
        ([systemCall] + (lock?.owners ?? []).map(\.systemCall)).compactMap { $0 }.filter { $0.peers?.isEmpty == false }
    }
}

// MARK: - Sentences

extension StallReport.SystemCall {
    /// The processes for which the call waited, a clause for each.
    package var allPeersInWords: [String] {
        let clauses = (peers ?? []).map { "\($0.role.lead) \($0.inWords)" }
        return clauses + (omittedPeers.map { ["\($0) more processes are left out"] } ?? [])
    }

    /// The processes for which the call waited, as a clause: `its writing end is open in cat (pid 7), which was in read when
    /// it was looked at`.
    ///
    /// `nil` if the report does not say.
    package var peersInWords: String? {
        guard let first = peers?.first else {
            return missingPeersReason.map { "for which process it waits is not known: \($0)" }
        }
        let more = (peers?.count ?? 1) - 1 &+ (omittedPeers ?? 0)
        return "\(first.role.lead) \(first.inWords)" + (more > 0 ? ", and \(more) more" : "")
    }
}

extension StallReport.Peer {
    package init(role: StallReport.PeerRole, pid: Int32) {
        self.role = role
        self.pid = pid
    }

    /// The process and what it did at the only look at it, which is early in the wait:
    /// `cat (pid 7, running for 2 s), which was in read when it was looked at`.
    package var inWords: String {
        if isThisProcess == true {
            guard let thread else { return "this process" }
            return "this process, whose \(thread.inWords) was in \(call ?? "a call")\(Self.once)"
        }
        let number = pid.map { "pid \($0)" } ?? "pid not known"
        let age = runningMilliseconds.map { ", running for \(Self.rough($0))" } ?? ""
        let who = "\(name ?? "a process") (\(number)\(age))"
        let isOne = threads ?? 1 <= 1
        let what = doing.map { "\(isOne ? "which" : "whose main thread") \($0)" }
        return [who, what, reason].compactMap(\.self).joined(separator: ", ")
    }

    private static let once = " when it was looked at"

    private var call: String? { systemCall.map { name in target.map { "\(name)(\($0))" } ?? name } }

    private var doing: String? {
        switch state {
        case "R": "was on a CPU or ready to run\(Self.once)"
        case "T": "a signal had stopped\(Self.once)"
        // strace(1) stops a program for a moment at each call.
        case "t": "a debugger or tracer had stopped\(Self.once)"
        case "Z": threads ?? 1 > 1 ? "has ended" : "has ended, and its parent has not waited for it"
        default:
            call.map { "was in \($0)\(Self.once)" }
                ?? waitChannel.map { "waited in the kernel function \($0)\(Self.once)" }
        }
    }

    /// A time in its largest unit.
    private static func rough(_ milliseconds: Double) -> String {
        let seconds = milliseconds / 1_000
        switch seconds {
        case ..<1: return "\(milliseconds.whole) ms"
        case ..<120: return "\(Int(seconds)) s"
        case ..<7_200: return "\(Int(seconds / 60)) min"
        case ..<172_800: return "\(Int(seconds / 3_600)) h"
        default: return seconds < 1e12 ? "\(Int(seconds / 86_400)) days" : "an unknown time"
        }
    }
}

extension StallReport.PeerRole {
    /// The words before the process.
    package var lead: String {
        switch self {
        case .holder: "the lock is held by"
        case .leaseHolder: "a lease on the file is held by"
        case .otherEnd: "its other end is open in"
        case .writer: "its writing end is open in"
        case .reader: "its reading end is open in"
        case .child: "the child is"
        default: "it waits for"
        }
    }
}
