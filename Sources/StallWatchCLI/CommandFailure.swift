import Glibc

struct CommandFailure: Error, Equatable {
    /// Exit statuses: 1 and 2 as of grep(1), the others of sysexits.h.
    enum Status: Int32 {
        /// Nothing was found: no match, no such process.
        case nothing = 1
        /// The command line is wrong, or names a path that is not there.
        case usage = 2
        /// EX_USAGE: the command or the option was removed.
        case removed = 64
        /// EX_DATAERR: a report is faulty.
        case faultyData = 65
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
        /// Of shells: a program cannot be executed, or is not found.
        case notExecutable = 126, notFound = 127

        /// It is not known whether the process makes progress, which `health` ends with as with a wrong command line.
        static let cannotTell = usage
    }

    let status: Status
    let sentence: String

    init(_ status: Status, _ sentence: String) {
        self.status = status
        self.sentence = sentence
    }

    init(reading path: String, errno: Int32) {
        let isMissing = [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG].contains(errno)
        self.init(
            "\(path.isEmpty ? "''" : path) cannot be read", errno, isMissing ? .usage : .inputOutput,
            advice: errno == ENOENT ? ". Give a folder or a file that is there" : "")
    }

    init(writing path: String, errno: Int32) {
        let isBroken = [ENOSPC, EDQUOT, EFBIG, EIO].contains(errno)
        self.init("\(path) cannot be written", errno, isBroken ? .inputOutput : .cannotCreate)
    }

    init(starting path: String, errno: Int32) {
        let status = errno == ENOENT ? Status.notFound : .notExecutable
        self.init(status, "\(path) cannot be started: \(String(cString: strerror(errno)))")
    }

    private init(_ words: String, _ errno: Int32, _ status: Status, advice: String = "") {
        let isDenied = errno == EACCES || errno == EPERM
        self.init(isDenied ? .noPermission : status, "\(words): \(String(cString: strerror(errno)))\(advice)")
    }
}
