import Glibc
import LinuxSupport
import TextOutput

enum StandardOutput {
    /// Writes text for people; throws ``ClosedOutput`` when the reader has closed its end, else a ``CommandFailure``.
    static func write(_ text: String) throws { try write(Array(text.forThisReader.utf8)) }

    /// Writes a document or commands; throws as for text.
    static func write(_ bytes: [UInt8]) throws {
        guard let error = writeAll(bytes, to: STDOUT_FILENO) else { return }
        if error == EPIPE { throw ClosedOutput() }
        throw CommandFailure(.inputOutput, "standard output cannot be written: \(String(cString: strerror(error)))")
    }

    /// Whether the reader has closed its end: hours may pass without a write that would show it.
    static var isClosed: Bool {
        var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&output, 1, 0) > 0 && output.revents & Int16(POLLERR | POLLNVAL) != 0
    }
}

enum StandardError {
    /// Writes at once, and ignores errors: there is no other place to report them.
    static func write(_ text: String) {
        _ = writeAll(Array(text.forThisReader.utf8), to: STDERR_FILENO)
    }
}

extension String {
    /// The text as the reader's locale and log can take it.
    fileprivate var forThisReader: String {
        WorkflowLog.plain(LocaleCharacters.areUnicode ? self : drawnInASCII)
    }
}

/// The log of a job of GitHub Actions, in which output can be a command.
enum WorkflowLog {
    private static let isUsed = getenv("GITHUB_ACTIONS").map { strcmp($0, "true") == 0 } ?? false

    /// The text, without commands if it goes to such a log.
    static func plain(_ text: String) -> String { isUsed ? text.withoutWorkflowCommands : text }
}

/// The reader has closed standard output, as in `stallwatch top | head`, which ends the command without an error.
struct ClosedOutput: Error {}
