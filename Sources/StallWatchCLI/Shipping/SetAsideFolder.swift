import LinuxSupport
import Glibc
import StallReports

/// The folder with reports that the collector did not take, each beside a file with the reason.
///
/// It is a report directory itself, so `stallwatch ship` can send it once the reason is gone.
struct SetAsideFolder {
    /// The most reports in the folder; the oldest ones are removed for newer ones.
    static let maximumReports = 10_000
    private static let reasonSuffix = ".reason"

    let path: String
    private var count: Int

    init(path: String) {
        self.path = path
        count = Self.reports(in: path).count
    }

    /// Keeps a report: links its file, which takes no room while the original exists, or writes a copy.
    ///
    /// - Parameters:
    ///   - name: The file's name.
    ///   - directory: The report directory.
    ///   - reason: A sentence.
    /// - Returns: The error number if neither could be done, or `nil`.
    mutating func add(_ name: String, from directory: String, reason: String) -> Int32? {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { return errno }
        let target = path + "/" + name
        if link(directory + "/" + name, target) != 0, errno != EEXIST {
            let failure = errno
            guard let bytes = AtomicFile.read(directory + "/" + name, limit: StallReport.maximumBytes) else {
                return failure
            }
            do throws(SystemError) {
                try AtomicFile.replace(target, with: bytes)
            } catch {
                return error.errno ?? EIO
            }
        }
        let time = Timestamp(wallClockNanoseconds: wallClockNow())
        // The report is kept; without its reason it can still be sent again.
        _ = try? AtomicFile.replace(target + Self.reasonSuffix, with: Array("\(time) \(reason)\n".utf8))
        count += 1
        if count > Self.maximumReports { removeOldest() }
        return nil
    }

    /// Removes a tenth, so that the folder is not listed for each new report.
    private mutating func removeOldest() {
        let names = Self.reports(in: path).sorted()
        let surplus = max(names.count - Self.maximumReports * 9 / 10, 0)
        for name in names.prefix(surplus) {
            unlink(path + "/" + name)
            unlink(path + "/" + name + Self.reasonSuffix)
        }
        count = names.count - surplus
    }

    private static func reports(in path: String) -> [String] {
        (directoryEntries(path) ?? []).map(\.name).filter(ReportFiles.isReport)
    }
}
