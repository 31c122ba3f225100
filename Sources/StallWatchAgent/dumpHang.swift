import Glibc
import LinuxSupport
import StallReports
import StallWatch

/// Captures all threads of this process and writes their report into a directory.
///
/// CPreload calls it in the processes of `stallwatch test`, by name, on a thread of its own.
///
/// - Parameters:
///   - milliseconds: The time without progress.
///   - directory: The directory's path.
///   - answer: Receives the report's path or, after a failure, the reason, ended by a zero byte.
///   - size: The size of `answer` in bytes.
/// - Returns: 0, or 1 if there is no report.
@_cdecl("stallwatch_dump_hang")
public func dumpHang(
    _ milliseconds: UInt64, _ directory: UnsafePointer<CChar>, _ answer: UnsafeMutablePointer<CChar>, _ size: Int
) -> Int32 {
    let now = monotonicNow()
    let since = now &- min(milliseconds &* 1_000_000, now)
    let text: String
    var status: Int32 = 1
    do throws(StallWatchError) {
        let directory = String(cString: directory)
        let report = try HangDump.take("tests", since: since, directory: directory)
        text = report.map { "\(directory)/\($0.fileName)" } ?? "the threads could not be captured in time"
        status = report == nil ? 1 : 0
    } catch {
        text = error.description
    }
    store(text, in: answer, size: size)
    return status
}
