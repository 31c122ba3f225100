import Glibc
import LinuxSupport
import StallReports
import TextOutput

struct ControlClient {
    /// The longest time until the answer to a slow request, in nanoseconds: a capture of all threads has 10 s, a proof 15 s.
    private static let slowAnswerTime: UInt64 = 20_000_000_000
    private static let answerTime: UInt64 = 3_000_000_000

    let pid: Int32
    /// The socket's path from an earlier ``socketPath``, so that it is not searched for again; `nil` if unknown.
    var knownPath: String?

    /// Returns the path of a process's control socket, as the tool reaches it; `nil` if it has none.
    var socketPath: String? {
        let sockets = (directoryEntries("/proc/\(pid)/fd") ?? []).compactMap { entry in
            readLink("/proc/\(pid)/fd/\(entry.name)").flatMap(UnixSocketPeer.number(inLink:))
        }
        // A machine with many sockets has a long table.
        let table = readSmallFile("/proc/\(pid)/net/unix", limit: 16 << 20) ?? ""
        let path = Self.controlPath(in: table, ofSockets: Set(sockets))
        // The process may have another root directory.
        return path.map { "/proc/\(pid)/root\($0)" }
    }

    /// The path of the control socket among sockets with these numbers, by the contents of /proc/net/unix.
    static func controlPath(in table: String, ofSockets sockets: Set<Substring>) -> String? {
        for line in table.split(separator: "\n") {
            // Num RefCount Protocol Flags Type St Inode Path
            let words = line.split(separator: " ", maxSplits: 7)
            guard words.count == 8, sockets.contains(words[6]), words[7].hasPrefix("/"),
                let name = words[7].split(separator: "/").last, ControlRequest.isSocketName(name)
            else { continue }
            return String(words[7])
        }
        return nil
    }

    var noAnswer: CommandFailure {
        CommandFailure(.tryAgain, "The monitor in process \(pid) gave no answer: try again.")
    }

    /// Decodes what the monitor sent.
    ///
    /// - Throws: ``CommandFailure/Status/tryAgain`` if the answer is not whole, as of a process that ended meanwhile;
    ///   ``CommandFailure/Status/faultyData`` if it is whole.
    func decoded(_ bytes: [UInt8]) throws(CommandFailure) -> ControlAnswer {
        if let answer = ControlAnswer(jsonData: bytes) { return answer }
        guard bytes.last == UInt8(ascii: "\n") else { throw noAnswer }
        throw CommandFailure(
            .faultyData,
            "The answer of the monitor in process \(pid) cannot be read: it may be of another version. "
                + "Use the tool of the program's version of StallWatch."
        )
    }

    /// Sends a request and waits for the answer.
    ///
    /// - Throws: ``CommandFailure`` if the process is gone, another user's or not monitored, its socket is off or does
    ///   not answer, or the monitor refuses the request.
    func answer(to request: ControlRequest) throws(CommandFailure) -> ControlAnswer {
        guard let path = knownPath ?? socketPath else {
            // Says why it cannot be asked, if it is not there or another user's.
            _ = try InspectedProcess.status(of: pid)
            let process = InspectedProcess(pid: pid)
            guard process.isMonitored else { throw process.notMonitored }
            guard InspectedProcess.showsFiles(pid) else {
                throw CommandFailure(.noPermission, InspectedProcess.hidesFiles(pid) + ".")
            }
            throw CommandFailure(
                .nothing,
                "The monitor in process \(pid) has no control socket: set control = .socket(directory:) in its configuration."
            )
        }
        let descriptor: Int32
        switch UnixSocket.connect(to: path) {
        case .connected(let connected): descriptor = connected
        case .failed(EAGAIN):
            throw CommandFailure(.tryAgain, "The monitor in process \(pid) has too many clients: try again.")
        case .failed(let error):
            let status: CommandFailure.Status = error == EACCES || error == EPERM ? .noPermission : .inputOutput
            throw CommandFailure(
                status, "The control socket of process \(pid) cannot be opened: \(String(cString: strerror(error)))."
            )
        }
        defer { close(descriptor) }
        guard UnixSocket.peer(of: descriptor)?.process == pid else {
            throw CommandFailure(.noPermission, "Another process has replaced the control socket of process \(pid).")
        }
        let deadline = monotonicNow() &+ (request.isSlow ? Self.slowAnswerTime : Self.answerTime)
        UnixSocket.send(Array(request.line.utf8), to: descriptor, until: deadline)
        guard let bytes = UnixSocket.receive(from: descriptor, limit: ControlAnswer.maximumBytes, until: deadline)
        else { throw noAnswer }
        let answer = try decoded(bytes)
        if let error = answer.error {
            let status: CommandFailure.Status = answer.isUnknownRequest == true ? .faultyData : .tryAgain
            throw CommandFailure(status, "The monitor in process \(pid) refused the request: \(error.printable).")
        }
        // The process may be another user's, and its indices are used as they are.
        if let fault = answer.report?.fault ?? answer.tasks?.fault(stacks: answer.report?.stacks.count ?? 0) {
            throw CommandFailure(.faultyData, "The answer of process \(pid) is faulty: \(fault.printable).")
        }
        return answer
    }
}
