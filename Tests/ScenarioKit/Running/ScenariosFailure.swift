import Glibc
import LinuxSupport
import StallWatch

enum StandardError {
    /// Writes the text at once; ignores a failure, because there is nowhere to report it.
    static func write(_ text: String) {
        _ = writeAll(Array(text.utf8), to: STDERR_FILENO)
    }
}

enum StandardOutput {
    /// Writes the text at once, to a terminal and to a pipe.
    static func write(_ text: String) throws(ScenariosFailure) {
        guard writeAll(Array(text.utf8), to: STDOUT_FILENO) == nil else {
            throw ScenariosFailure(.inputOutput, "standard output cannot be written: keep its reader running")
        }
    }
}

/// The reason for which the program cannot continue: a sentence that says what to do, and the exit status.
struct ScenariosFailure: Error, Equatable {
    /// The exit statuses for failures of the system, with the meanings of sysexits.h.
    enum Status: Int32 {
        /// EX_OSERR: the system refused something, such as a thread.
        case systemError = 71
        /// EX_CANTCREAT: a file or directory cannot be made.
        case cannotCreate = 73
        /// EX_IOERR: a file cannot be written or read.
        case inputOutput = 74
    }

    let status: Status
    let sentence: String

    init(_ status: Status, _ sentence: String) {
        self.status = status
        self.sentence = sentence
    }

    /// A failure to make or write a file.
    init(_ sentence: String, errno: Int32) {
        self.init(Status(ofFileError: errno), "\(sentence): \(String(cString: strerror(errno)))")
    }

    init(_ error: StallWatchError) {
        guard error.code == .unwritableReports else {
            self.init(.systemError, error.description)
            return
        }
        self.init(error.errno.map(Status.init(ofFileError:)) ?? .cannotCreate, error.description)
    }

    /// The failure of something that `what` names, such as a scenario.
    init(_ error: any Error, of what: String) {
        self =
            error as? ScenariosFailure ?? (error as? StallWatchError).map { ScenariosFailure($0) }
            ?? ScenariosFailure(.systemError, "\(what) cannot run: \(error)")
    }
}

extension ScenariosFailure.Status {
    /// A full or broken disk is an input/output error; every other error concerns the path.
    init(ofFileError error: Int32) {
        switch error {
        case ENOSPC, EDQUOT, EFBIG, EIO: self = .inputOutput
        default: self = .cannotCreate
        }
    }
}

extension Duration {
    var milliseconds: Double { self / .milliseconds(1) }

    var seconds: Double { self / .seconds(1) }
}
