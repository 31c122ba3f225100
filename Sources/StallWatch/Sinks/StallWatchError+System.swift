import LinuxSupport
import StallReports

extension StallWatchError {
    /// An error of the given kind with the message and the error number of a system call that failed.
    init(_ code: Code, _ error: SystemError) {
        self.init(code, error.message, errno: error.errno)
    }
}

/// Runs `body` and throws its error as a ``StallWatchError`` of the given kind.
func throwing<Result>(
    _ code: StallWatchError.Code, _ body: () throws(SystemError) -> Result
) throws(StallWatchError) -> Result {
    do throws(SystemError) {
        return try body()
    } catch {
        throw StallWatchError(code, error)
    }
}
