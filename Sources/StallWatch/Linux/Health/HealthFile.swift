import Glibc
import LinuxSupport
import StallReports

/// A file that says whether the loops make progress, replaced atomically; its modification time, the last progress of
/// all loops, is for probes that can only see the file's age.
final class HealthFile: HealthChannel {
    let threadName = "stallwatch-hlt"
    let answerLimit: UInt64
    private let path: String
    private let interval: UInt64
    /// Leads `stallwatch health` from the process to the file.
    private var pointer: UnlinkedFile?

    init(path: String, interval: UInt64) throws(StallWatchError) {
        guard let absolute = absolutePath(path) else {
            throw StallWatchError(
                .unwritableReports, "the working directory is unknown: give the health file an absolute path",
                errno: errno)
        }
        self.path = absolute
        self.interval = interval
        answerLimit = min(interval, 1_000_000_000)
        if let status = FileStatus(path: path), !status.isRegular {
            throw StallWatchError(
                .unwritableReports, "the health file \(path) is not a regular file: name another path")
        }
        let probe = AtomicFile.temporaryPath(for: self.path)
        do throws(SystemError) {
            try AtomicFile.write([], to: probe)
        } catch {
            throw StallWatchError(
                .unwritableReports,
                "the health file \(path) cannot be written: create its directory, or make it writable",
                errno: error.errno)
        }
        unlink(probe)
    }

    func publish(_ record: HealthRecord?, at now: UInt64) throws(StallWatchError) {
        // Without an answer the record stays as it is, and its age shows that the watchdog does not run.
        guard let record else { return }
        let progressed = UInt64(clamping: record.progressedAt.microsecondsSince1970) &* 1_000
        try throwing(.unwritableReports) { () throws(SystemError) in
            try AtomicFile.replace(path, with: record.jsonData(), changedAt: progressed)
        }
        // A reader that finds the pointer finds the file.
        if pointer == nil {
            pointer = UnlinkedFile(Array(path.utf8), named: HealthRecord.pointerName, in: Self.directory(of: path))
        }
    }

    func nextCheck(at now: UInt64) -> UInt64 { now &+ interval }

    func finish(_ record: HealthRecord) throws(StallWatchError) {
        defer { pointer = nil }
        try publish(record, at: 0)
    }

    private static func directory(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) }.flatMap { $0.isEmpty ? nil : $0 } ?? "/"
    }
}

/// An unlinked file that lives as long as this object: found through /proc/<pid>/fd, also from outside of a container.
final class UnlinkedFile: Sendable {
    private let descriptor: KeptDescriptor

    /// Writes the file, which readers find by the link's end `/.<name>.<identity>.tmp (deleted)`; `nil` if that fails.
    init?(_ bytes: [UInt8], named name: String, in directory: String) {
        let owner = ProcessIdentity.current() ?? ProcessIdentity(pid: getpid(), startTicks: 0, bootID: "unknown")
        let path = ReportDirectory.temporaryPath(for: name, in: directory, of: owner)
        guard let descriptor = try? AtomicFile.create(path) else { return nil }
        unlink(path)
        guard writeAll(bytes, to: descriptor) == nil else {
            close(descriptor)
            return nil
        }
        self.descriptor = KeptDescriptor(descriptor)
    }

    deinit { descriptor.close() }
}
