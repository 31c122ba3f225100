import StallReports
import LinuxSupport
import Glibc
import Synchronization

/// The baseline files that the tests of this process use, each read once.
enum BaselineFiles {
    /// The environment variable with the path of the baseline of tests that name none.
    static let variable = "STALLWATCH_BASELINE"
    /// A larger file is no baseline.
    private static let maximumBytes = 16 << 20

    private static let known = Mutex<[String: Result<StallBaseline, StallWatchError>]>([:])

    /// Returns the baseline at a path, or the one that the environment names; `nil` if there is none.
    static func baseline(at path: String?) throws(StallWatchError) -> StallBaseline? {
        guard let path = path ?? getenv(variable).map({ String(cString: $0) }), !path.isEmpty else { return nil }
        return try known.withLock { known in
            if let result = known[path] { return result }
            let result = Result { () throws(StallWatchError) in try read(path) }
            known[path] = result
            return result
        }.get()
    }

    private static func read(_ path: String) throws(StallWatchError) -> StallBaseline {
        guard let bytes = AtomicFile.read(path, limit: maximumBytes) else {
            throw StallWatchError(
                .invalidConfiguration,
                "the baseline \(path) cannot be read: create it with `stallwatch baseline update --file \(path)`, "
                    + "or name another file; relative paths start at the tests' working directory"
            )
        }
        do {
            return try StallBaseline(jsonData: bytes)
        } catch {
            throw StallWatchError(.invalidConfiguration, "the baseline \(path) is damaged: \(error.message)")
        }
    }
}
