import Glibc
import LinuxSupport
import Synchronization

/// A locked file that shows other processes that a monitor of this process writes into a directory.
///
/// The lock is the process's (fcntl(2), F_SETLK): it ends with the process, whatever ends that, and is seen from every PID
/// namespace and container. A forked child does not inherit it; flock(2) and a lock of an open file would live on in the
/// child of a monitor that is gone. Such a lock ends, too, when the process closes any descriptor of the file. So each
/// monitor has a file of its own, which nothing else in the process opens, and takes the lock again whenever it writes: a
/// program that closes all descriptors loses it until then.
final class MonitorLock: Sendable {
    static let fileName = "stall-monitor"

    private let directory: FixedDirectory
    private let owner: ProcessIdentity
    private let held = Mutex<(name: String, file: KeptDescriptor)?>(nil)

    /// Takes no lock yet.
    init(in directory: FixedDirectory, of owner: ProcessIdentity) { (self.directory, self.owner) = (directory, owner) }

    deinit { release() }

    /// Takes the lock, or makes sure of it; without one, or if the file system has none, others wait for a day.
    func hold() {
        held.withLock { held in
            if let file = held?.file, file.isOpen, Self.lock(file.number, F_SETLK) != nil { return }
            // The program has closed it.
            if let lost = held?.name { try? AtomicFile.remove(lost, in: directory) }
            let name = ReportDirectory.temporaryName(for: Self.fileName, of: owner)
            held = (try? AtomicFile.create(name, in: directory)).map { (name, KeptDescriptor($0)) }
            if let file = held?.file, Self.lock(file.number, F_SETLK) == nil { remove(&held) }
        }
    }

    func release() { held.withLock { remove(&$0) } }

    /// Removes the file before the lock, so that no other process finds it without one.
    private func remove(_ held: inout (name: String, file: KeptDescriptor)?) {
        guard let (name, file) = held else { return }
        try? AtomicFile.remove(name, in: directory)
        file.close()
        held = nil
    }

    /// Sets or reads a lock of the whole file for writing, without waiting; `nil` if that fails.
    private static func lock(_ descriptor: Int32, _ command: Int32) -> flock? {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        return fcntl(descriptor, command, &lock) == 0 ? lock : nil
    }

    enum State: Equatable {
        case held, free
        /// There is no file, or the file system has no locks.
        case unknown
    }

    /// The names of the locks in a directory by their processes, of which there may be as many as reports.
    struct Names {
        private var byProcess: [ProcessIdentity: [String]] = [:]
        /// By the identity without the host's name, which a redaction may have removed from a report.
        private var processes: [ProcessIdentity: ProcessIdentity] = [:]

        init(among names: [String]) {
            for name in names where name.hasPrefix(".\(MonitorLock.fileName).") {
                guard let process = ReportDirectory.writer(of: name) else { continue }
                byProcess[process, default: []].append(name)
                if processes[process.withoutHost] == nil { processes[process.withoutHost] = process }
            }
        }

        /// The number of locks; those of processes that are gone count until a monitor starts in the directory.
        var count: Int { byProcess.values.reduce(0) { $0 + $1.count } }

        /// Returns the process with this identity, with any host's name, that has a lock.
        func process(like process: ProcessIdentity) -> ProcessIdentity? { processes[process.withoutHost] }

        /// Returns whether a monitor of another process uses the directory.
        func state(of process: ProcessIdentity, in directory: FixedDirectory) -> State {
            var state = State.unknown
            for name in byProcess[process] ?? [] {
                let descriptor = directory.open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
                guard descriptor >= 0 else { continue }
                let file = KeptDescriptor(descriptor)
                defer { file.close() }
                guard let lock = MonitorLock.lock(descriptor, F_GETLK) else { continue }
                if lock.l_type != Int16(F_UNLCK) { return .held }
                state = .free
            }
            return state
        }
    }

    /// The time without a sign of a process after which it counts as gone where nothing else can tell, in nanoseconds.
    static let longestSilence: UInt64 = 24 * 3_600 * 1_000_000_000

    /// Decides whether a process no longer updates what it wrote `silence` nanoseconds ago; `nil` stands for an unknown one.
    ///
    /// `isAlive` is ``ProcessIdentity/isAlive``. A lock that can be taken proves nothing of another host: what hosts share
    /// may not share its locks.
    static func isGone(
        _ process: ProcessIdentity?, seenFrom own: ProcessIdentity, isAlive: Bool?, lock: State, silence: UInt64
    ) -> Bool {
        guard let process else { return silence >= longestSilence }
        if lock == .held { return false }
        if let isAlive { return !isAlive }
        let areKnown = !process.bootID.isEmpty && !own.bootID.isEmpty
        if areKnown, process.bootID == own.bootID, lock == .free { return true }
        // The machine has been started again.
        if areKnown, process.bootID != own.bootID, process.host == own.host { return true }
        return silence >= longestSilence
    }
}

extension ProcessIdentity {
    var withoutHost: ProcessIdentity {
        ProcessIdentity(pid: pid, startTicks: startTicks, pidNamespace: pidNamespace, bootID: bootID, host: "")
    }
}
