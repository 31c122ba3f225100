import Glibc
import LinuxSupport
import StackCapture
import StallReports

/// Finds out for whom a system call waits: the holder of a file lock, the other end of a Unix socket or pipe, a child.
///
/// 1. A file lock's holder is the process in /proc/locks with the same file and a conflicting type and range, confirmed
///    by a descriptor of that process that shows the lock.
/// 2. The other end of a Unix socket is open in the processes with a descriptor of the inode that the kernel names as
///    the peer. Where it does not tell the inode, it is the process that made the connection (SO_PEERCRED).
/// 3. A reader of a pipe waits for the processes that have it open for writing, and a writer for those for reading.
/// 4. A call that waits for one child waits for that process.
///
/// The watchdog asks for each wait once, and only in a stall. No thread is stopped meanwhile.
final class PeerFinder {
    static let maximumPeers = 4
    static let maximumAnswers = 8
    static let maximumThreads = 256
    /// F_GETPIPE_SZ of fcntl(2).
    private static let getPipeCapacity: Int32 = 1032

    private struct Wait: Hashable {
        var thread: Int32
        var runs: UInt64
        var number: Int
        var arguments: [UInt64]
    }

    private var answers: [Wait: PeerAnswer] = [:]
    private let memory = GuardedMemory()

    /// Finds out for whom a call waits since `since`, or `nil`; another number of `runs` of the thread is another wait.
    func find(_ call: SystemCall, of thread: Int32, runs: UInt64, since: UInt64 = monotonicNow()) -> PeerAnswer? {
        let wait = Wait(thread: thread, runs: runs, number: call.number, arguments: call.arguments)
        if let known = answers[wait] { return known }
        let now = monotonicNow()
        let since = bootTimeNow() - (now - min(since, now))
        guard let answer = search(call, of: thread, since: since) else { return nil }
        if answers.count >= Self.maximumAnswers { answers.removeAll() }
        answers[wait] = answer
        return answer
    }

    private func search(_ call: SystemCall, of thread: Int32, since: UInt64) -> PeerAnswer? {
        guard showsOwnThreads else { return nil }
        switch call.name {
        case "flock", "fcntl":
            return call.purpose == .lock ? holders(call, since) : nil
        case "wait4", "waitid":
            guard let child = call.awaitedChild else { return nil }
            let peer = Peer.reading(child, as: .child, isConfirmed: true, waitingSince: since)
            return peer.map { PeerAnswer(peers: [$0]) } ?? PeerAnswer(reason: "the child has just ended")
        default:
            guard let (descriptor, reads) = call.transfer(memory),
                let link = readLink("/proc/self/fd/\(descriptor)"), descriptor >= 0
            else { return nil }
            if link.hasPrefix("socket:[") { return socket(descriptor, link, of: thread, since) }
            // Only pipes have a capacity.
            guard fcntl(descriptor, Self.getPipeCapacity) > 0 else { return nil }
            return pipe(link, reads ? .writer : .reader, of: thread, since)
        }
    }

    // MARK: - File locks

    private func holders(_ call: SystemCall, _ since: UInt64) -> PeerAnswer {
        let descriptor = Int32(truncatingIfNeeded: call.argument(0))
        guard let link = readLink("/proc/self/fd/\(descriptor)"),
            var info = readSmallFile("/proc/self/fdinfo/\(descriptor)").map(ByteCursor.init)
        else { return PeerAnswer(reason: "the system does not tell which file it is") }
        // Since Linux 5.14.
        let inode = info.skip(pastLinePrefix: "ino:") ? info.number() : nil
        let request = call.lockRequest(of: getpid(), inode: inode, memory)
        guard let text = readSmallFile("/proc/locks", limit: FileLock.maximumText) else {
            return PeerAnswer(reason: "/proc/locks cannot be read")
        }
        let locks = request.holders(in: text)
        guard !locks.isEmpty else {
            return PeerAnswer(
                reason: "/proc/locks shows no holder: another PID namespace or, in a network file system, another "
                    + "machine has it, or it was just released")
        }
        var named: [Int32] = []
        for lock in locks where lock.process > 0 && !named.contains(lock.process) { named.append(lock.process) }
        var search = OpenFileSearch(for: link, first: named, others: false)
        func confirmed() -> [Int32] {
            OpenFileSearch.processes(
                of: search.found.filter { descriptor in
                    FileLock.all(in: descriptor.info).contains { shown in locks.contains(where: shown.isSame) }
                })
        }
        let missing = named.filter { !confirmed().contains($0) }
        // The process that has made a flock(2) may have left it to a child; a lock of an open file names no process.
        if locks.contains(where: { $0.process <= 0 }) || missing.count > search.refused {
            search = OpenFileSearch(for: link, first: named)
        }
        let found = confirmed()
        var peers = peers(found, .holder, since)
        if peers.isEmpty {
            peers = named.compactMap { Peer.reading($0, as: .holder, isConfirmed: false, waitingSince: since) }
        }
        if peers.isEmpty, let lock = locks.first {
            let why =
                lock.process < 0
                ? "it belongs to an open file, not to a process"
                : "its process has ended, or is in another PID namespace"
            return PeerAnswer(reason: "\(why), and no process that shows its descriptors has it" + search.limits)
        }
        return answer(peers)
    }

    // MARK: - Other ends

    private func pipe(_ link: String, _ role: StallReport.PeerRole, of thread: Int32, _ since: UInt64) -> PeerAnswer {
        let search = OpenFileSearch(for: link, first: [getpid()])
        let ends = search.found.filter { role == .writer ? $0.isWritable : $0.isReadable }
        return answer(
            ends, role, of: thread, since, or: "no process that shows its descriptors has it open" + search.limits)
    }

    private func socket(_ descriptor: Int32, _ link: String, of thread: Int32, _ since: UInt64) -> PeerAnswer? {
        guard let maker = UnixSocketPeer.process(of: descriptor) else { return nil }
        // A filter of system calls may end the process for a call that few programs make.
        let isFiltered = ProcessStatus.mayHaveFilter(readSmallFile("/proc/self/status") ?? "")
        if !isFiltered, let number = UInt32(link.dropFirst(8).dropLast()),
            let other = UnixSocketPeer.inode(ofPeerOf: number)
        {
            let search = OpenFileSearch(for: "socket:[\(other)]", first: [getpid(), maker])
            if !search.found.isEmpty { return answer(search.found, .otherEnd, of: thread, since, or: "") }
        }
        switch maker {
        case 0: return PeerAnswer(reason: "the process that made it is in another PID namespace")
        case getpid():
            return PeerAnswer(
                reason: "this process has made both ends, and the system does not show who has the other one now")
        default:
            let peer = Peer.reading(maker, as: .otherEnd, isConfirmed: false, waitingSince: since)
            return peer.map { PeerAnswer(peers: [$0]) } ?? PeerAnswer(reason: "the process that made it has ended")
        }
    }

    private func answer(
        _ ends: [OpenDescriptor], _ role: StallReport.PeerRole, of thread: Int32, _ since: UInt64, or reason: String
    ) -> PeerAnswer {
        let processes = OpenFileSearch.processes(of: ends)
        var peers = peers(processes, role, since)
        if let index = peers.firstIndex(where: { $0.isThisProcess == true }) {
            let own = Set(ends.filter { $0.process == getpid() }.map(\.number))
            if let (user, call) = user(of: own, besides: thread) {
                (peers[index].thread, peers[index].systemCall) = (.init(ThreadIdentity(user)), call.name)
            }
        }
        return peers.isEmpty ? PeerAnswer(reason: reason) : answer(peers)
    }

    private func user(of descriptors: Set<Int32>, besides waiter: Int32) -> (thread: Int32, call: SystemCall)? {
        for thread in ThreadIdentity.all().prefix(Self.maximumThreads) where thread != waiter {
            guard let text = readSmallFile("/proc/self/task/\(thread)/syscall"),
                let call = ThreadActivity(systemCallFile: text)?.call, call.takesDescriptor,
                descriptors.contains(Int32(truncatingIfNeeded: call.argument(0)))
            else { continue }
            return (thread, call)
        }
        return nil
    }

    /// Returns what processes do that have been seen with the file: other processes first, then this one, and last those
    /// that have begun since the wait, which as a rule have inherited the file and close it soon.
    private func peers(_ processes: [Int32], _ role: StallReport.PeerRole, _ since: UInt64) -> [Peer] {
        // Before the readings, so that no process seems to be younger than the wait because they took long.
        let now = bootTimeNow()
        let waited = milliseconds(now - min(since, now))
        let all = processes.compactMap { Peer.reading($0, as: role, isConfirmed: true, waitingSince: since) }
        func place(_ peer: Peer) -> Int {
            if peer.isThisProcess == true { return 1 }
            return peer.runningMilliseconds.map { $0 < waited } == true ? 2 : 0
        }
        return (0...2).flatMap { wanted in all.filter { place($0) == wanted } }
    }

    private func answer(_ peers: [Peer]) -> PeerAnswer {
        PeerAnswer(peers: Array(peers.prefix(Self.maximumPeers)), omitted: max(peers.count - Self.maximumPeers, 0))
    }
}

extension OpenFileSearch {
    fileprivate static func processes(of descriptors: [OpenDescriptor]) -> [Int32] {
        descriptors.reduce(into: []) { all, descriptor in
            if !all.contains(descriptor.process) { all.append(descriptor.process) }
        }
    }

    /// What the search has not seen, as the rest of a sentence.
    fileprivate var limits: String {
        if isCut {
            return "; the search ended after \(Self.maximumProcesses) processes or \(Self.maximumTime / 1_000_000) ms"
        }
        return refused > 0 ? "; \(refused) processes do not show theirs" : ""
    }
}
