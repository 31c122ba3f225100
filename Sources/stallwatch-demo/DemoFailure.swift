import Glibc
import StallWatch

/// The reason for which the demo cannot continue: a sentence that says what to do, and the exit status.
struct DemoFailure: Error, Equatable {
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

    /// A failure of the monitor.
    init(_ error: StallWatchError) {
        guard error.code == .unwritableReports else {
            self.init(.systemError, error.description)
            return
        }
        self.init(error.errno.map(Status.init(ofFileError:)) ?? .cannotCreate, error.description)
    }
}

extension DemoFailure.Status {
    /// A full or broken disk is an input/output error.
    ///
    /// Every other error concerns the path.
    init(ofFileError error: Int32) {
        switch error {
        case ENOSPC, EDQUOT, EFBIG, EIO: self = .inputOutput
        default: self = .cannotCreate
        }
    }
}
