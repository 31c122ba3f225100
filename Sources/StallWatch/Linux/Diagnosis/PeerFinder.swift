import Glibc
import LinuxSupport
import StackCapture
import StallReports

/// What is to be found out for a thread in a system call, with what the call showed while the thread waited.
struct PeerQuestion: Hashable, Sendable {
    enum Subject: Hashable, Sendable {
        /// `nil` for a file that the system does not tell.
        case holder(FileLockRequest, link: String?)
        case child(Int32)
        /// `nil` for more threads or descriptors than are looked at.
        case ownChild(FoundationChildren?)
        /// `nil` for a path that cannot be read.
        case lease(path: String?)
        case pipeEnd(StallReport.PeerRole, WantedFile)
        /// `nil` for a datagram socket: the kernel shows the socket that it is connected to, and no process.
        case socketEnd(madeBy: Int32?, link: String)
    }
    var thread: Int32
    /// Another number of runs of the thread is another wait.
    var runs: UInt64
    var subject: Subject

    /// Reads what the call, in `Process.waitUntilExit()` or not, waits for in this process only; `nil` if that is nothing
    /// that others have.
    init?(
        _ call: SystemCall, of thread: Int32, runs: UInt64, _ memory: any MemoryReading,
        untilExit: @autoclosure () -> Bool = false
    ) {
        guard showsOwnThreads else { return nil }
        (self.thread, self.runs) = (thread, runs)
        if StallReport.loopWaits.contains(call.name), untilExit() {
            let children = FoundationChildren(memory)
            // The thread wakes every 50 ms: while the sockets are the same, so is the answer. Numbers of processes return.
            if children?.awaited == [] { self.runs = 0 }
            subject = .ownChild(children)
            return
        }
        switch call.name {
        case "flock", "fcntl":
            guard call.purpose == .lock else { return nil }
            let descriptor = Int32(truncatingIfNeeded: call.argument(0))
            var info = readSmallFile("/proc/self/fdinfo/\(descriptor)").map(ByteCursor.init)
            // Since Linux 5.14.
            let inode = info?.skip(pastLinePrefix: "ino:") == true ? info?.number() : nil
            let link = info == nil ? nil : readLink("/proc/self/fd/\(descriptor)")
            subject = .holder(call.lockRequest(of: getpid(), inode: inode, memory), link: link)
        case "wait4", "waitid":
            guard let child = call.awaitedChild else { return nil }
            subject = .child(child)
        case "open", "openat", "openat2", "creat", "truncate":
            // Then the path has been found: a file system that hangs is not asked for it.
            guard readSmallFile("/proc/self/task/\(thread)/wchan")?.hasPrefix("__break_lease") == true else {
                return nil
            }
            subject = .lease(path: call.target(memory: memory))
        default:
            guard let (descriptor, reads) = call.transfer(memory), !call.hasLostFile(of: thread),
                let link = readLink("/proc/self/fd/\(descriptor)"), descriptor >= 0
            else { return nil }
            if link.hasPrefix("socket:[") {
                guard UnixSocketPeer.isUnix(descriptor), UnixSocketPeer.isConnected(descriptor) else { return nil }
                subject = .socketEnd(madeBy: UnixSocketPeer.process(of: descriptor), link: link)
            } else {
                // Only pipes have a capacity.
                guard fcntl(descriptor, getPipeCapacity) > 0 else { return nil }
                // A link without a path is the same pipe everywhere.
                let identity = link.hasPrefix("/") ? FileStatus(cachedAt: "", from: descriptor)?.identity ?? [] : nil
                subject = .pipeEnd(reads ? .writer : .reader, WantedFile(link: link, identity: identity))
            }
        }
    }
}

/// Finds out for whom system calls wait: the holder of a file lock or a lease, the other end of a Unix socket or pipe, a
/// child.
///
/// 1. A file lock's holder is the process with a descriptor that shows a lock of /proc/locks with the same file and a
///    conflicting type and range. The process that made it, which /proc/locks names, may have left it to another one.
/// 2. The other end of a Unix socket is open in the processes with a descriptor of the inode that the kernel names as
///    the peer. The process that connected, or listened (SO_PEERCRED), may have left it to another one, too.
/// 3. A reader of a pipe waits for the processes that have it open for writing, and a writer for those for reading.
/// 4. A call that waits for one child waits for that process, and `Process.waitUntilExit()` for one of
///    ``FoundationChildren``.
///
/// It reads files of other processes, so ``PeerSearch`` keeps it away from the watchdog. No thread is stopped meanwhile.
struct PeerFinder {
    static let maximumPeers = 4
    static let maximumThreads = 256

    private enum Step {
        case done(PeerAnswer)
        /// Search for descriptors of the files, and finish with them.
        case search([WantedFile], first: [Int32], (OpenFileSearch) -> PeerAnswer)
    }

    /// Returns the answers to questions about waits that began at times of CLOCK_BOOTTIME, in their order, after one search
    /// of all processes at most.
    static func answers(to questions: [PeerSearch.Question]) -> [PeerAnswer] {
        let steps = questions.map { step($0.question, $0.since) }
        var files: Set<WantedFile> = []
        var first: [Int32] = []
        for case .search(let wanted, let processes, _) in steps {
            files.formUnion(wanted)
            first += processes
        }
        lazy var search = OpenFileSearch(for: files, first: (first + (children() ?? [])).unique)
        return steps.map { step in
            switch step {
            case .done(let answer): answer
            case .search(_, _, let finish): finish(search)
            }
        }
    }

    private static func step(_ question: PeerQuestion, _ since: UInt64) -> Step {
        switch question.subject {
        case .holder(let request, let link?): holders(request, link, since)
        case .holder: .done(PeerAnswer(reason: "the system does not tell which file it is"))
        case .child(let child):
            .done(
                Peer.reading(child, as: .child, isConfirmed: true, waitingSince: since)
                    .map { PeerAnswer(peers: [$0]) } ?? PeerAnswer(reason: "the child has just ended"))
        case .ownChild(let children): child(of: children, since)
        case .lease(let path): leaseHolders(of: path, since)
        case .pipeEnd(let role, let pipe):
            .search([pipe], first: [getpid()]) { search in
                let ends = search[pipe].filter { role == .writer ? $0.isWritable : $0.isReadable }
                return answer(
                    ends, role, of: question.thread, since,
                    or: "no process that shows its descriptors has it open" + search.limits)
            }
        case .socketEnd(let maker, let link): socket(link, madeBy: maker, of: question.thread, since)
        }
    }

    // MARK: - File locks

    private static func holders(_ request: FileLockRequest, _ link: String, _ since: UInt64) -> Step {
        guard let text = readSmallFile("/proc/locks", limit: FileLock.maximumText) else {
            return .done(PeerAnswer(reason: "/proc/locks cannot be read"))
        }
        let locks = request.holders(in: text)
        guard !locks.isEmpty else {
            return .done(
                PeerAnswer(
                    reason: "/proc/locks shows no holder: the process that made the lock has ended or is in another "
                        + "PID namespace, in a network file system another machine has it, or it was just released"))
        }
        return holders(of: locks, WantedFile(link: link), as: .holder, since)
    }

    /// The processes with a lease on a file (F_SETLEASE of fcntl(2)) that have to give it back before the call goes on.
    private static func leaseHolders(of path: String?, _ since: UInt64) -> Step {
        guard let path, let file = FileStatus(cachedAt: path)?.identity,
            let text = readSmallFile("/proc/locks", limit: FileLock.maximumText)
        else { return .done(PeerAnswer(reason: "the file or /proc/locks cannot be read")) }
        let leases = FileLock.all(in: text).filter { $0.kind == .lease && $0.isOf(file) }
        guard !leases.isEmpty else { return .done(PeerAnswer(reason: "/proc/locks shows no lease on the file")) }
        return holders(of: leases, WantedFile(link: path, identity: file), as: .leaseHolder, since)
    }

    /// Searches for the processes that have locks or leases, at least one, of a file.
    private static func holders(
        of locks: [FileLock], _ file: WantedFile, as role: StallReport.PeerRole, _ since: UInt64
    ) -> Step {
        .search([file], first: locks.map(\.process).filter { $0 > 0 }) { search in
            let found = FileLock.holders(of: locks, in: search[file], refused: search.refused)
            let peers = peers(found.known, role, since)
            guard peers.isEmpty else { return answer(peers) }
            let deed = role == .leaseHolder ? "made the lease" : "made the lock"
            let maker = found.makers.lazy.compactMap { reason($0, deed, since) }.first
            let why =
                locks.contains { $0.process >= 0 }
                ? "its process has ended, or the system does not show it"
                : "it belongs to an open file, not to a process"
            let all = ", and no process that shows its descriptors was found to have it" + search.limits
            return PeerAnswer(reason: maker ?? why + all)
        }
    }

    /// Returns a reason with the process that the kernel names for a deed; `nil` if it has ended.
    ///
    /// It may have left the file to another process, and its number may have been given again.
    private static func reason(_ process: Int32, _ deed: String, _ since: UInt64) -> String? {
        Peer.reading(process, as: .holder, isConfirmed: false, waitingSince: since).map { maker in
            "the system tells only the number of the process that \(deed), now that of \(maker.inWords)"
        }
    }

    private static func child(of awaited: FoundationChildren?, _ since: UInt64) -> Step {
        let files = awaited?.sockets.compactMap(otherEnd) ?? []
        guard let awaited, files.count == awaited.sockets.count else {
            return .done(PeerAnswer(reason: "the system does not show who has the sockets of this process's children"))
        }
        return .search(files, first: [getpid()]) { search in
            // A child that was not looked at may be the one.
            let hasSeenAll = !search.isCut || self.children().map(search.hasSeen) == true
            let holders = files.map { search[$0].map(\.process).unique }
            let children = awaited.candidates(holders, own: getpid()) { process in
                readSmallFile("/proc/\(process)/stat").flatMap(ProcStat.init)?.parent == getpid()
            }
            guard let children, hasSeenAll else {
                return PeerAnswer(reason: "no child shows the socket that tells of its end" + search.limits)
            }
            let peers = children.compactMap { Peer.reading($0, as: .child, isConfirmed: true, waitingSince: since) }
            guard let first = peers.first else { return PeerAnswer(reason: "the child has just ended") }
            return children.count == 1
                ? PeerAnswer(peers: [first])
                : PeerAnswer(reason: "it may be any of \(children.count) children, such as \(first.inWords)")
        }
    }

    /// Returns the children of this process, which its threads list (proc_pid_task_tid_children(5)); `nil` if the kernel
    /// does not tell, or above ``maximumThreads``.
    private static func children() -> [Int32]? {
        let threads = ThreadIdentity.all()
        guard threads.count <= maximumThreads else { return nil }
        var children: [Int32] = []
        for thread in threads {
            guard let text = readSmallFile("/proc/self/task/\(thread)/children") else { return nil }
            children += text.split(separator: " ").compactMap { Int32($0) }
        }
        return children
    }

    // MARK: - Other ends

    /// Returns the socket at the other end of one with this inode; `nil` if the kernel does not tell, or may not be asked.
    private static func otherEnd(of socket: UInt32) -> WantedFile? {
        // A filter of system calls may end the process for a call that few programs make.
        guard !ProcessStatus.mayHaveFilter(readSmallFile("/proc/self/status") ?? "") else { return nil }
        return UnixSocketPeer.inode(ofPeerOf: socket).map { WantedFile(link: "socket:[\($0)]") }
    }

    private static func socket(_ link: String, madeBy maker: Int32?, of thread: Int32, _ since: UInt64) -> Step {
        guard let wanted = UnixSocketPeer.number(inLink: link).flatMap({ UInt32($0) }).flatMap(otherEnd) else {
            return .done(PeerAnswer(reason: unseenEnd(madeBy: maker, since)))
        }
        return .search([wanted], first: [getpid()] + (maker.map { [$0] } ?? [])) { search in
            let isElsewhere = maker.map { $0 != getpid() && search.shows($0) } ?? false
            return answer(
                search[wanted], .otherEnd, of: thread, since,
                or: isElsewhere
                    ? "no process that shows its descriptors has it open" + search.limits
                    : unseenEnd(madeBy: maker, since))
        }
    }

    /// Returns why it is not known which process has the other end of a connection.
    ///
    /// A server's end has the number of the process that listened, which as a rule leaves connections to its children.
    static func unseenEnd(madeBy maker: Int32?, _ since: UInt64) -> String {
        switch maker {
        case nil: "the system does not show which process has its other end"
        case 0: "the process that made it is in another PID namespace"
        case getpid(): "this process made both ends, and the system does not show which process has the other one now"
        case let maker?: reason(maker, "connected or listened", since) ?? "the process that made it has ended"
        }
    }

    private static func answer(
        _ ends: [OpenDescriptor], _ role: StallReport.PeerRole, of thread: Int32, _ since: UInt64,
        or reason: @autoclosure () -> String
    ) -> PeerAnswer {
        var peers = peers(ends.map(\.process).unique, role, since)
        if let index = peers.firstIndex(where: { $0.isThisProcess == true }) {
            let own = Set(ends.filter { $0.process == getpid() }.map(\.number))
            if let (user, call) = user(of: own, besides: thread) {
                (peers[index].thread, peers[index].systemCall) = (.init(ThreadIdentity(user)), call.name)
            }
        }
        return peers.isEmpty ? PeerAnswer(reason: reason()) : answer(peers)
    }

    private static func user(of descriptors: Set<Int32>, besides waiter: Int32) -> (thread: Int32, call: SystemCall)? {
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
    private static func peers(_ processes: [Int32], _ role: StallReport.PeerRole, _ since: UInt64) -> [Peer] {
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

    private static func answer(_ peers: [Peer]) -> PeerAnswer {
        PeerAnswer(peers: Array(peers.prefix(Self.maximumPeers)), omitted: max(peers.count - Self.maximumPeers, 0))
    }
}

extension OpenFileSearch {
    /// What the search has not seen, as the rest of a sentence.
    fileprivate var limits: String {
        if isCut {
            return "; the search ended after \(Self.maximumProcesses) processes or \(Self.maximumTime / 1_000_000) ms"
        }
        return refused.isEmpty ? "" : "; \(refused.count) processes do not show theirs"
    }
}
