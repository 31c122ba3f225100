import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct ReportDirectoryTests {
    private let temporary: TemporaryDirectory

    init() throws {
        temporary = try TemporaryDirectory()
    }

    private func mode(of path: String) throws -> UInt32 {
        try #require(FileStatus(path: path)).permissions
    }

    private func expectUnwritable(_ path: String, sourceLocation: SourceLocation = #_sourceLocation) -> StallWatchError?
    {
        let error = #expect(throws: StallWatchError.self, sourceLocation: sourceLocation) {
            _ = try ReportDirectory(path: path)
        }
        #expect(error?.code == .unwritableReports, sourceLocation: sourceLocation)
        return error
    }

    // MARK: Creating

    @Test func missingDirectoriesAreCreatedForTheirOwnerOnly() throws {
        let path = temporary.path + "/a/b/c"
        _ = try ReportDirectory(path: path)
        for directory in ["/a", "/a/b", "/a/b/c"] { #expect(try mode(of: temporary.path + directory) == 0o700) }
    }

    @Test(arguments: ["", "/", "//", "/."])
    func anExistingDirectoryIsUsed(suffix: String) throws {
        try #require(chmod(temporary.path, 0o755) == 0)
        _ = try ReportDirectory(path: temporary.path + suffix)
        #expect(try mode(of: temporary.path) == 0o755)
        #expect(temporary.names.isEmpty, "the check leaves no file")
    }

    @Test func aSlashAtTheEndOfANewDirectoryIsFine() throws {
        _ = try ReportDirectory(path: temporary.path + "/new/")
        #expect(temporary.names == ["new"])
    }

    @Test func aFileInsteadOfADirectoryIsAnError() throws {
        let file = try temporary.write("taken", "")
        #expect(expectUnwritable(file)?.message.contains("\(file) is a file") == true)
        #expect(expectUnwritable(file + "/below")?.message.contains("\(file) is a file") == true)
        #expect(expectUnwritable(file + "/")?.message.contains("\(file) is a file") == true)
    }

    @Test func anEmptyPathIsRefused() {
        #expect(expectUnwritable("")?.message.contains("empty") == true)
    }

    /// Not even root can create a file in /proc (proc(5)).
    @Test func anUnwritableDirectoryIsRefusedWithTheSystemsReason() throws {
        let error = try #require(expectUnwritable("/proc/self/fdinfo"))
        #expect(error.message.contains("/proc/self/fdinfo"))
        #expect(error.errno != nil)
        #expect(error.description.count > error.message.count)
        let missing = try #require(expectUnwritable("/proc/self/fdinfo/reports"))
        #expect(missing.message.contains("/proc/self/fdinfo/reports"))
    }

    @Test func aPathThatIsTooLongIsRefused() {
        let name = String(repeating: "x", count: 300)
        #expect(expectUnwritable(temporary.path + "/" + name)?.errno == ENAMETOOLONG)
    }

    @Test func aDanglingLinkIsRefused() throws {
        let link = temporary.path + "/link"
        try #require(symlink(temporary.path + "/missing", link) == 0)
        #expect(expectUnwritable(link)?.errno == ENOENT)
    }

    // MARK: Writing

    @Test func aReportIsAFileForItsOwnerOnly() throws {
        let directory = try ReportDirectory(path: temporary.path)
        let report = try StallReport.literal()
        let file = try directory.write(report)
        #expect(temporary.names == ["stall-20261121T080000.123456Z-5f3b8a1c2d4e.json"])
        #expect(file == temporary.path + "/stall-20261121T080000.123456Z-5f3b8a1c2d4e.json")
        #expect(try mode(of: file) == 0o600)
        #expect(try StallReport(jsonData: Array(try #require(readSmallFile(file)).utf8)) == report)
    }

    @Test func aReportReplacesItsEarlierState() throws {
        let directory = try ReportDirectory(path: temporary.path)
        var report = try StallReport.literal()
        report.state = .ongoing
        let file = try directory.write(report)
        // A reader that has opened the old file still reads all of it.
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        report.state = .ended
        report.samples = []
        #expect(try directory.write(report) == file)
        #expect(temporary.names.count == 1)
        #expect(try StallReport(jsonData: Array(try #require(readSmallFile(file)).utf8)).state == .ended)
        var old = [UInt8](repeating: 0, count: 1 << 16)
        let count = read(descriptor, &old, old.count)
        #expect(try StallReport(jsonData: Array(old.prefix(max(count, 0)))).state == .ongoing)
    }

    @Test func namesSortByTime() throws {
        var report = try StallReport.literal()
        let names = (0..<50).map { step in
            report.startedAt = Timestamp(microsecondsSince1970: 1_795_248_000_000_000 + Int64(step) * 7_777_777_777)
            return report.fileName
        }
        #expect(names == names.sorted())
    }

    @Test func aFailedReplacementLeavesTheOldFileOnly() throws {
        let directory = try ReportDirectory(path: temporary.path)
        let report = try StallReport.literal()
        let name = report.fileName
        try #require(mkdir(temporary.path + "/" + name, 0o700) == 0)
        let error = #expect(throws: StallWatchError.self) { try directory.write(report) }
        #expect(error?.code == .unwritableReports)
        #expect(error?.errno == EISDIR)
        #expect(error?.message.contains(name) == true)
        #expect(temporary.names == [name])
    }
}
