import Glibc
import LinuxSupport
import StallReports

/// A file that says whether the loops make progress, replaced atomically; its modification time, the last progress of
/// all loops, is for probes that can only see the file's age.
final class HealthFile: HealthChannel {
    let threadName = "stallwatch-hlt"
    let answerLimit: UInt64
    private let file: FixedFile
    private let interval: UInt64
    /// Leads `stallwatch health` from the process to the file.
    private var pointer: UnlinkedFile?
    private var hasLeftovers = true

    /// Checks that the file can be written, unless its file system has not answered in time.
    init(path: String, interval: UInt64) throws(StallWatchError) {
        self.interval = interval
        answerLimit = min(interval, 1_000_000_000)
        let checked = try FileCreation.inTime { () throws(StallWatchError) in try HealthFile.checked(path) }
        file = checked ?? FixedFile(path, isOpened: false)
    }

    private static func checked(_ path: String) throws(StallWatchError) -> FixedFile {
        let file = FixedFile(path)
        if let status = FileStatus(path: file.name, in: file.directory), !status.isRegular {
            throw StallWatchError(
                .unwritableReports, "the health file \(path) is not a regular file: name another path")
        }
        let probe = AtomicFile.temporaryPath(for: file.name)
        do throws(SystemError) {
            // With a time it is not flushed, for which a busy disk may take long.
            try AtomicFile.write([], to: probe, in: file.directory, changedAt: wallClockNow())
            try AtomicFile.remove(probe, in: file.directory)
        } catch {
            throw StallWatchError(
                .unwritableReports,
                "the health file \(path) cannot be written: create its directory, or make it writable",
                errno: error.errno)
        }
        return file
    }

    func publish(_ record: HealthRecord?, at now: UInt64) throws(StallWatchError) {
        // Without an answer the record stays as it is, and its age shows that the watchdog does not run.
        guard let record else { return }
        let progressed = UInt64(clamping: record.progressedAt.microsecondsSince1970) &* 1_000
        // The directory may have been removed and made again.
        try file.directory.reopening { () throws(SystemError) in
            try AtomicFile.replace(file.name, in: file.directory, with: record.jsonData(), changedAt: progressed)
        }
        // A reader that finds the pointer finds the file.
        if pointer == nil {
            pointer = UnlinkedFile(Array(file.path.utf8), named: HealthRecord.pointerName, in: file.directory)
        }
        // After the first record: supervisors wait for that.
        if exchange(&hasLeftovers, with: false) {
            file.directory.removeLeftovers(of: [file.name, ".\(HealthRecord.pointerName)"])
        }
    }

    func nextCheck(at now: UInt64) -> UInt64 { now &+ interval }

    func finish(_ record: HealthRecord) throws(StallWatchError) {
        defer { pointer = nil }
        try publish(record, at: 0)
    }
}

/// An unlinked file that lives as long as this object: found through /proc/<pid>/fd, also from outside of a container.
final class UnlinkedFile: Sendable {
    private let descriptor: KeptDescriptor

    /// Writes the file, which readers find by the link's end `/.<name>.<identity>.tmp (deleted)`; `nil` if that fails.
    init?(_ bytes: [UInt8], named name: String, in directory: FixedDirectory) {
        let temporary = ReportDirectory.temporaryName(for: name, of: .writer)
        guard let created = try? AtomicFile.create(temporary, in: directory) else { return nil }
        let file = KeptDescriptor(created)
        try? AtomicFile.remove(temporary, in: directory)
        guard writeAll(bytes, to: file.usable) == nil else {
            file.close()
            return nil
        }
        descriptor = file
    }

    deinit { descriptor.close() }
}
