import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import TextOutput

struct HealthCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Say whether a process makes progress, for probes of supervisors.",
        discussion: """
            Reads the health file that the monitor in the program writes (configuration.health). With a process id, the tool \
            finds the file through /proc, also in a container that it can see into; it has to run as the process's user or \
            as root. A file whose name is a number is written with its directory: ./4700.

            A process that is stopped by a signal, held by a debugger or frozen is neither healthy nor stuck. A process \
            that has just been continued, or a machine that has just been resumed, has up to a second to write its next record.

            Exit status: 0 if all loops make progress; 1 if a loop is stuck, or if the monitor has written no record for \
            three intervals and two seconds; 2 if the tool cannot tell: no such process, no monitor, no readable record, the \
            process is stopped or still starting; also for a wrong command line.

            Examples:
              stallwatch health /run/notes/health
              stallwatch health $(pidof notes)
              stallwatch health --json 4700
            """
    )

    @Argument(help: ArgumentHelp("The id of a process with a monitor, or its health file.", valueName: "pid-or-file"))
    var target: String

    @Flag(help: "Print JSON.")
    var json = false

    private struct Answer: Encodable {
        let status: Int32
        let sentence: String
        let record: HealthRecord
    }

    func validate() throws {
        if case .process(0) = HealthTarget(target) {
            throw ValidationError("0 is not the id of a process: give a number from 1 on.")
        }
        if target.isEmpty { throw ValidationError("The path is empty: give a process id or a health file.") }
    }

    func run() throws {
        let (record, verdict) = try read()
        try ClosedOutput.ignored {
            if json {
                let answer = Answer(status: verdict.status.rawValue, sentence: verdict.sentence, record: record)
                return try StandardOutput.write(JSONOutput.bytes(answer))
            }
            let word =
                switch verdict.status {
                case .healthy: "ok"
                case .stuck: "stuck"
                case .cannotTell: "cannot tell"
                }
            let proof = record.proof.map { "proof: \($0.sentence)".printable + "\n" } ?? ""
            try StandardOutput.write("\(word): \(verdict.sentence)".printable + "\n" + proof)
        }
        if verdict.status != .healthy { throw ExitCode(verdict.status.rawValue) }
    }

    private func read() throws -> (HealthRecord, HealthVerdict) {
        let target = HealthTarget(target)
        let path = try target.path()
        // Out of date, it is read again for a second, by count: where this tool has no CPU, its writer has none.
        var readingsLeft = 50
        while true {
            let record = try HealthTarget.record(path)
            let process = HealthVerdict.Process.of(record, at: target)
            let now = monotonicNow() / 1_000_000
            let verdict = HealthVerdict(record, at: now, process)
            guard verdict.status == .stuck, HealthVerdict.isStale(record, at: now), readingsLeft > 0 else {
                return (record, verdict)
            }
            readingsLeft -= 1
            usleep(20_000)
        }
    }
}

enum HealthTarget: Equatable {
    case process(Int32)
    case file(String)

    /// Digits alone are a process id; a file with such a name is written with a directory, as in `./4700`.
    init(_ argument: String) {
        let isNumber = argument.utf8.allSatisfy { 0x30...0x39 ~= $0 }
        if isNumber, let pid = Int32(argument) { self = .process(pid) } else { self = .file(argument) }
    }

    /// The path of the health file as the tool sees it; throws ``CommandFailure/Status/cannotTell``.
    func path() throws(CommandFailure) -> String {
        switch self {
        case .file(let path): return path
        case .process(let pid):
            do throws(CommandFailure) {
                _ = try InspectedProcess.status(of: pid)
            } catch {
                throw CommandFailure(.cannotTell, error.sentence)
            }
            let directory = "/proc/\(pid)"
            guard let path = Self.pointer(in: directory) else {
                throw Self.noFile(pid, showsFiles: InspectedProcess.showsFiles(pid))
            }
            // The process may be in a container.
            return "\(directory)/root\(path)"
        }
    }

    /// The path in the unlinked file that a monitor keeps open, by its process's directory in /proc; `nil` without one.
    private static func pointer(in directory: String) -> String? {
        for entry in directoryEntries("\(directory)/fd") ?? [] {
            let file = "\(directory)/fd/\(entry.name)"
            guard let target = readLink(file), target.contains("/.\(HealthRecord.pointerName)."),
                let bytes = AtomicFile.read(file, limit: HealthRecord.maximumBytes)
            else { continue }
            if let path = String(validating: bytes, as: UTF8.self) { return path }
        }
        return nil
    }

    /// Reads the record at a path as the tool sees it; throws a failure like ``path()``.
    static func record(_ path: String) throws(CommandFailure) -> HealthRecord {
        let inProgram = "Give the path that the program sets in health"
        func unreadable(_ reason: String, _ advice: String) -> CommandFailure {
            CommandFailure(.cannotTell, "\(path) cannot be read: \(reason). \(advice).")
        }
        guard let status = FileStatus(path: path) else {
            throw unreadable(String(cString: strerror(errno)), inProgram + ", and start the program first")
        }
        guard status.isRegular else { throw unreadable("it is not a regular file", inProgram) }
        guard let bytes = AtomicFile.read(path, limit: HealthRecord.maximumBytes) else {
            throw unreadable(String(cString: strerror(errno)), "Run the tool as the program's user or as root")
        }
        guard let record = HealthRecord(jsonData: bytes) else {
            throw CommandFailure(.cannotTell, "\(path) is no health record of this version. \(inProgram).")
        }
        return record
    }

    static func noFile(_ pid: Int32, showsFiles: Bool) -> CommandFailure {
        guard showsFiles else {
            return CommandFailure(.cannotTell, InspectedProcess.hidesFiles(pid) + ", or give the health file's path.")
        }
        return CommandFailure(
            .cannotTell,
            InspectedProcess.hasWatchdog(pid)
                ? "The monitor in process \(pid) writes no health file. Set configuration.health with a path in the program."
                : "Process \(pid) is not monitored: no watchdog runs in it. Start a StallMonitor in the program.")
    }
}
