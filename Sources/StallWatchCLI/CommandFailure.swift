import Glibc

/// Why a command cannot go on: a sentence that says what to do, and the exit status that goes with it.
struct CommandFailure: Error, Equatable {
    /// Exit statuses with the meanings of sysexits.h.
    enum Status: Int32 {
        /// EX_DATAERR: a report is faulty.
        case faultyData = 65
        /// EX_NOINPUT: there is nothing to read.
        case noInput = 66
        /// EX_OSERR: the system refused something.
        case systemError = 71
        /// EX_CANTCREAT: a file cannot be made.
        case cannotCreate = 73
        /// EX_IOERR: a file cannot be read or written.
        case inputOutput = 74
        /// EX_NOPERM: the permission is missing.
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

    /// A path that cannot be made or written.
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

/// Nobody reads standard output any more, as in `stallwatch top | head`: the end of the command, and no error.
struct ReaderGone: Error {}
