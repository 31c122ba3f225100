import StallReports
import LinuxSupport
import Glibc

/// A file with one report per line, and rotated files beside it, such as `stalls.ndjson.1`.
///
/// Several processes may write it: each appends lines under a file lock, and the one that fills the file rotates it. A
/// line is final: a fingerprint's newest suppressed stall, which stands for those since the last report, is written
/// when the monitor stops.
final class NDJSONFile: Sink {
    private let file: FixedFile
    private let maximumBytes: Int
    private let keep: Int
    private var suppressed = NewestSuppressed()

    private var path: String { file.path }

    init(_ file: FixedFile, maximumBytes: Int, keep: Int) {
        self.file = file
        self.maximumBytes = maximumBytes
        self.keep = keep
    }

    /// Creates the file and its directories if they are missing, and checks that the file can be written.
    @discardableResult
    func check() throws(StallWatchError) -> FileFlush {
        if let status, !status.isRegular { throw notAFile }
        try makeDirectories(file.directory.path)
        file.directory.reopen()
        let opened = try openLocked()
        defer { unlock(opened) }
        return FileFlush(opened.usable)
    }

    func checkReadiness() throws(StallWatchError) {
        do throws(StallWatchError) {
            unlock(try openLocked())
        } catch  where error.errno == ENOENT {
            try check()
        }
    }

    /// Of the file that has the name now.
    private var status: FileStatus? { FileStatus(path: file.name, in: file.directory) }

    func receive(_ delivery: Delivery) throws(StallWatchError) { try suppressed.receive(delivery, write: write) }

    func finish() -> [StallWatchError] { suppressed.errors(of: write) }

    private func write(_ report: StallReport) throws(StallWatchError) {
        do {
            try append(report.jsonLine())
        } catch  where error.errno == ENOENT || error.errno == EBADF {
            // The program may have closed it.
            try check()
            try append(report.jsonLine())
        }
    }

    private func append(_ line: [UInt8]) throws(StallWatchError) {
        let opened = try openWithRoom(for: line.count)
        defer { unlock(opened) }
        let size = try self.size(opened)
        // A process that died while writing may have left a line without its newline.
        var last: UInt8 = UInt8(ascii: "\n")
        if size > 0 { _ = pread(opened.usable, &last, 1, off_t(size - 1)) }
        let bytes = last == UInt8(ascii: "\n") ? line : [UInt8(ascii: "\n")] + line
        var error = writeAll(bytes, to: opened.usable)
        // What the program has closed is written, and not lost before the power fails.
        if error == nil, case .failed(let reason) = FileFlush(opened.usable), reason != EBADF { error = reason }
        if let reason = error {
            remove(bytes, from: opened, at: size)
            throw failure(reason)
        }
    }

    /// Removes a line, or the part of it that was written, from the end of a file: readers would see a damaged report.
    ///
    /// A line that others have written behind it stays: a logger knows no lock of this file, and some file systems have none.
    func remove(_ line: [UInt8], from opened: KeptDescriptor, at size: Int) {
        var end = [UInt8](repeating: 0, count: line.count + 1)
        let count = pread(opened.usable, &end, end.count, off_t(size))
        if count > 0, line.starts(with: end.prefix(count)) { ftruncate(opened.usable, off_t(size)) }
    }

    /// Opens and locks the file; rotates it first if `count` more bytes do not fit.
    private func openWithRoom(for count: Int) throws(StallWatchError) -> KeptDescriptor {
        let opened = try openLocked()
        do {
            let size = try self.size(opened)
            if size == 0 || size + count <= maximumBytes { return opened }
            try rotate()
        } catch {
            unlock(opened)
            throw error
        }
        unlock(opened)
        return try openLocked()
    }

    /// Opens the file that has the name now, and locks it if the file system can, in up to 100 attempts, 10 ms apart.
    private func openLocked() throws(StallWatchError) -> KeptDescriptor {
        for _ in 0..<100 {
            let descriptor = file.directory.open(
                file.name, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
            guard descriptor >= 0 else { throw failure(errno) }
            let opened = KeptDescriptor(descriptor)
            // What is written into a FIFO without a reader is lost.
            guard FileStatus(descriptor: descriptor)?.isRegular == true else {
                opened.close()
                throw notAFile
            }
            let isLockedElsewhere = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK
            // Another process may have rotated the file before this one had the lock.
            if !isLockedElsewhere, let identity = opened.identity, identity == status?.identity { return opened }
            opened.close()
            if isLockedElsewhere { usleep(10_000) }
        }
        throw failure(EWOULDBLOCK)
    }

    /// A child that was forked meanwhile has the file open, too, and would keep the lock (flock(2)).
    private func unlock(_ opened: KeptDescriptor) {
        flock(opened.usable, LOCK_UN)
        opened.close()
    }

    private func size(_ opened: KeptDescriptor) throws(StallWatchError) -> Int {
        guard let status = FileStatus(descriptor: opened.usable) else { throw failure(errno) }
        return status.size
    }

    private func rotate() throws(StallWatchError) {
        let (name, directory) = (file.name, file.directory)
        do throws(SystemError) {
            guard keep > 0 else { return try AtomicFile.remove(name, in: directory) }
            for number in stride(from: keep - 1, through: 1, by: -1)
            where FileStatus(path: "\(name).\(number)", in: directory) != nil {
                try AtomicFile.rename("\(name).\(number)", to: "\(name).\(number + 1)", in: directory)
            }
            try AtomicFile.rename(name, to: "\(name).1", in: directory)
        } catch {
            throw failure(error.errno ?? EIO)
        }
    }

    private var notAFile: StallWatchError {
        StallWatchError(
            .unwritableReports,
            "\(path) is not a regular file: name one, or open it and use .ndjson(descriptor:); "
                + "/dev/stdout and /dev/stderr can be named"
        )
    }

    private func failure(_ error: Int32) -> StallWatchError {
        let problem =
            switch error {
            case ELOOP: "is a symbolic link: name the file itself"
            case EWOULDBLOCK: "is locked: end the process that keeps its lock (flock), or name another file"
            default: "cannot be written: make it writable, free some space or name another file"
            }
        return StallWatchError(.unwritableReports, "\(path) \(problem)", errno: error)
    }
}

struct NewestSuppressed {
    /// The most fingerprints; the next report counts the stalls of others.
    private static let maximum = 32

    private var reports: [String: StallReport] = [:]

    private var all: [StallReport] { reports.values.sorted { $0.id < $1.id } }

    func errors(of write: (StallReport) throws(StallWatchError) -> Void) -> [StallWatchError] {
        all.compactMap { report in
            do throws(StallWatchError) {
                try write(report)
                return nil
            } catch {
                return error
            }
        }
    }

    /// Writes a final report; a suppressed one is kept instead.
    mutating func receive(
        _ delivery: Delivery, write: (StallReport) throws(StallWatchError) -> Void
    ) throws(StallWatchError) {
        guard let report = delivery.report else { return }
        // A report of an earlier process counts none of them.
        guard let fingerprint = report.fingerprint, delivery.event != .recovered else {
            if delivery.event != .suppressed { try write(report) }
            return
        }
        guard delivery.event == .suppressed else {
            // The policy forgets fingerprints that it has not seen for long: then no report counts the last one.
            if report.repeats == 0, let last = reports[fingerprint] {
                try write(last)
                reports[fingerprint] = nil
            }
            try write(report)
            reports[fingerprint] = nil
            return
        }
        if reports[fingerprint] == nil, reports.count >= Self.maximum { _ = reports.popFirst() }
        reports[fingerprint] = report
    }
}

/// An open file or stream that receives one report per line: without a lock, a rotation or a flush.
final class NDJSONStream: Sink {
    /// The longest wait for a stream that takes nothing, in nanoseconds; only of a descriptor that does not block.
    static let timeLimit: UInt64 = 5_000_000_000

    private let file: Duplicate
    private var isCut = false
    private var suppressed = NewestSuppressed()

    init(_ file: Duplicate) { self.file = file }

    /// Returns the descriptor that a path of the system stands for; `nil` for any other path.
    static func descriptor(named path: String) -> Int32? {
        switch path {
        case "/dev/stdout": return STDOUT_FILENO
        case "/dev/stderr": return STDERR_FILENO
        default:
            let directory = ["/dev/fd/", "/proc/self/fd/"].first(where: path.hasPrefix)
            return directory.flatMap { Int32(path.dropFirst($0.count)) }
        }
    }

    /// Duplicates the descriptor and returns the sink that writes to it; throws if it is not open for writing.
    static func description(of descriptor: Int32) throws(StallWatchError) -> SinkDescription {
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, flags & O_ACCMODE != O_RDONLY else {
            throw StallWatchError(
                .unwritableReports, "descriptor \(descriptor) is not open for writing: open it before the monitor",
                errno: flags < 0 ? errno : nil)
        }
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
        guard copy >= 0 else {
            throw StallWatchError(
                .unwritableReports, "descriptor \(descriptor) cannot be duplicated: raise the limit (ulimit -n)",
                errno: errno)
        }
        let file = Duplicate(copy, of: descriptor)
        return SinkDescription(name: "stallwatch-ndj", events: [.ended, .suppressed, .recovered], isStore: true) {
            NDJSONStream(file)
        }
    }

    func receive(_ delivery: Delivery) throws(StallWatchError) { try suppressed.receive(delivery, write: write) }

    func finish() -> [StallWatchError] { suppressed.errors(of: write) }

    func checkReadiness() throws(StallWatchError) {
        guard file.kept.isOpen else {
            throw StallWatchError(
                .unwritableReports, "the program has closed the duplicate of descriptor \(file.number): leave it open")
        }
        // A pipe without a reader, and a closed connection (poll(2)).
        var state = pollfd(fd: file.kept.number, events: Int16(POLLOUT), revents: 0)
        if poll(&state, 1, 0) > 0, Int32(state.revents) & POLLERR != 0 { throw unwritable(EPIPE) }
    }

    private func unwritable(_ reason: Int32) -> StallWatchError {
        StallWatchError(
            .unwritableReports, "descriptor \(file.number) cannot be written: its reader has gone or reads nothing",
            errno: reason)
    }

    private func write(_ report: StallReport) throws(StallWatchError) {
        try checkReadiness()
        let bytes = (isCut ? [UInt8(ascii: "\n")] : []) + report.jsonLine()
        let deadline = monotonicNow() &+ Self.timeLimit
        var left = bytes[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes { Glibc.write(file.kept.usable, $0.baseAddress, $0.count) }
            if count > 0 {
                left = left.dropFirst(count)
                continue
            }
            let reason = count < 0 ? errno : EIO
            if reason == EINTR { continue }
            if reason == EAGAIN, UnixSocket.wait(for: file.kept.number, POLLOUT, until: deadline) { continue }
            if left.count < bytes.count { isCut = true }
            throw unwritable(reason)
        }
        isCut = false
    }

    /// A duplicated descriptor, closed with the last reference.
    final class Duplicate: Sendable {
        let kept: KeptDescriptor
        /// The number that the app knows.
        let number: Int32

        init(_ descriptor: Int32, of number: Int32) {
            (kept, self.number) = (KeptDescriptor(descriptor), number)
        }

        deinit { kept.close() }
    }
}
