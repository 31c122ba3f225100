import Glibc
import LinuxSupport
import StallReports

/// The place where `health` reads a record: a process, or a health file.
enum HealthTarget: Equatable {
    case process(Int32)
    case file(String)

    /// Digits alone are a process id; a file with such a name is written with a directory, as in `./4700`.
    init(_ argument: String) {
        let isNumber =
            !argument.isEmpty && argument.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        if isNumber, let pid = Int32(argument) { self = .process(pid) } else { self = .file(argument) }
    }

    /// Returns the path of the health file, as the tool sees it.
    ///
    /// - Throws: A ``CommandFailure`` with the status ``CommandFailure/Status/cannotTell``.
    func path() throws(CommandFailure) -> String {
        switch self {
        case .file(let path): return path
        case .process(let pid):
            do throws(CommandFailure) {
                _ = try MonitoredProcess.status(of: pid)
            } catch {
                throw CommandFailure(.cannotTell, error.sentence)
            }
            let directory = "/proc/\(pid)"
            let path = MonitoredProcess.unnamedFile(HealthRecord.pointerName, of: directory) { bytes, _ in
                String(validating: bytes, as: UTF8.self)
            }
            guard let path else { throw Self.noFile(pid) }
            // The process may be in a container.
            return "\(directory)/root\(path)"
        }
    }

    /// Reads the record.
    ///
    /// - Parameter path: The path of the health file, as the tool sees it.
    /// - Returns: The record.
    /// - Throws: A ``CommandFailure`` with the status ``CommandFailure/Status/cannotTell``.
    static func record(_ path: String) throws(CommandFailure) -> HealthRecord {
        guard let status = FileStatus(path: path) else {
            throw CommandFailure(
                .cannotTell,
                "\(path) cannot be read: \(String(cString: strerror(errno))). Give the path that the program sets in health, "
                    + "and start the program first.")
        }
        guard status.isRegular, let bytes = AtomicFile.read(path, limit: HealthRecord.maximumBytes) else {
            let reason = status.isRegular ? String(cString: strerror(errno)) : "it is not a regular file"
            throw CommandFailure(
                .cannotTell, "\(path) cannot be read: \(reason). Run the tool as the program's user or as root.")
        }
        guard let record = HealthRecord(jsonData: bytes) else {
            throw CommandFailure(
                .cannotTell,
                "\(path) is no health record of this version. Give the path that the program sets in health.")
        }
        return record
    }

    private static func noFile(_ pid: Int32) -> CommandFailure {
        guard MonitoredProcess.hasWatchdog(pid) else {
            return CommandFailure(
                .cannotTell,
                "Process \(pid) is not monitored: no watchdog runs in it. Start a StallMonitor in the program.")
        }
        return CommandFailure(
            .cannotTell,
            "The monitor in process \(pid) writes no health file. Set configuration.health with a path in the program.")
    }
}
