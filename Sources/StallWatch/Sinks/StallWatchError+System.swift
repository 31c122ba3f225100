import LinuxSupport
import StallReports

extension StallWatchError {
    /// Creates an error of the given kind from a failed system call's message and error number.
    init(_ code: Code, _ error: SystemError) {
        self.init(code, error.message, errno: error.errno)
    }
}

/// Runs `body` and rethrows its error as a ``StallWatchError`` of the given kind.
func throwing<Result>(
    _ code: StallWatchError.Code, _ body: () throws(SystemError) -> Result
) throws(StallWatchError) -> Result {
    do throws(SystemError) {
        return try body()
    } catch {
        throw StallWatchError(code, error)
    }
}
