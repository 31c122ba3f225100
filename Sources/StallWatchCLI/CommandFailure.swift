import ArgumentParser
import Glibc

/// An error that ends a command: a sentence that says what to do, and an exit status.
struct CommandFailure: Error, Equatable {
    /// Exit statuses; all but the first have the meanings of sysexits.h.
    enum Status: Int32 {
        /// `health` cannot tell whether the process makes progress.
        case cannotTell = 2
        /// EX_USAGE: the command line is wrong.
        case usage = 64
        /// EX_DATAERR: a report is faulty.
        case faultyData = 65
        /// EX_NOINPUT: no input.
        case noInput = 66
        /// EX_OSERR: the system refused a request.
        case systemError = 71
        /// EX_CANTCREAT: a file cannot be created.
        case cannotCreate = 73
        /// EX_IOERR: a file cannot be read or written.
        case inputOutput = 74
        /// EX_TEMPFAIL: try again later.
        case tryAgain = 75
        /// EX_NOPERM: permission denied.
        case noPermission = 77
    }

    let status: Status
    let sentence: String

    init(_ status: Status, _ sentence: String) {
        self.status = status
        self.sentence = sentence
    }

    /// A path that cannot be read.
    init(reading path: String, errno: Int32) {
        let status: Status
        switch errno {
        case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: status = .noInput
        case EACCES, EPERM: status = .noPermission
        default: status = .inputOutput
        }
        self.init(status, "\(path) cannot be read: \(String(cString: strerror(errno)))")
    }

    /// A path that cannot be created or written.
    init(writing path: String, errno: Int32) {
        let status: Status
        switch errno {
        case ENOSPC, EDQUOT, EFBIG, EIO: status = .inputOutput
        case EACCES, EPERM: status = .noPermission
        default: status = .cannotCreate
        }
        self.init(status, "\(path) cannot be written: \(String(cString: strerror(errno)))")
    }
}

/// A program that cannot be started.
struct StartFailure: Error, Equatable {
    /// The exit status of shells for a program that is there and cannot be executed.
    static let notExecutable: Int32 = 126
    /// The exit status of shells for a program that is not there.
    static let notFound: Int32 = 127

    var sentence: String
    /// ``notExecutable`` or ``notFound``.
    var status: Int32

    /// Prints the sentence and returns the error that ends the tool with the status.
    var exit: ExitCode {
        StandardError.write("Error: \(sentence)\n")
        return ExitCode(status)
    }
}
