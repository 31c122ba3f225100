import Foundation
import Glibc
import Testing
import TestSupport

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

    // MARK: Files that the program closes, as after closefrom(3) in a daemon

    @Test func `what failed because the program closed the file is done again`() throws {
        var attempts = 0
        try FixedDirectory(temporary.path).reopening { () throws(SystemError) in
            attempts += 1
            if attempts == 1 { throw SystemError("closed", errno: EBADF) }
        }
        #expect(attempts == 2)
    }

    /// The numbers under which this process has a file open.
    private static func descriptors(of path: String) -> [Int32] {
        (directoryEntries("/proc/self/fd") ?? []).compactMap { Int32($0.name) }.filter {
            readLink("/proc/self/fd/\($0)") == path
        }
    }

    @Test func `while another process starts, no file of the program is closed`() throws {
        let reports = try ReportDirectory(path: temporary.path)
        let (theirs, other) = (open("/dev/null", O_RDONLY | O_CLOEXEC), open(temporary.path, O_RDONLY | O_CLOEXEC))
        try #require(flock(other, LOCK_EX) == 0)
        let known = Self.descriptors(of: temporary.path)
        let worker = Worker(name: "test-lock")
        var found: Int32?
        _ = eventually(every: 1) {
            // It waits half a second for the other one.
            _ = try? worker.start { reports.holdLock() }
            found = Self.descriptors(of: temporary.path).first { !known.contains($0) }
            return found != nil
        }
        let number = try #require(found)
        try #require(dup2(theirs, number) == number)
        worker.finish(until: endOfPatience)
        for number in [theirs, other, number] { #expect(close(number) == 0) }
        reports.unlock()
    }

    // MARK: Creating

    @Test func `missing directories are created for their owner only`() throws {
        let path = temporary.path + "/a/b/c"
        _ = try ReportDirectory(path: path + "/")
        for directory in ["/a", "/a/b", "/a/b/c"] { #expect(try mode(of: temporary.path + directory) == 0o700) }
    }

    @Test func `a missing directory whose name is not UTF-8 is created`() throws {
        let path = temporary.path + "/" + pathText([0x63, 0x61, 0x66, 0xe9]) + "/stalls"
        _ = try ReportDirectory(path: path)
        #expect(FileStatus(path: path)?.isDirectory == true)
        let names = (directoryEntries(temporary.path) ?? []).map(\.name).filter { !$0.hasPrefix(".") }
        #expect(names == [pathText([0x63, 0x61, 0x66, 0xe9])])
    }

    @Test(arguments: ["", "/", "//", "/."])
    func anExistingDirectoryIsUsed(suffix: String) throws {
        try #require(chmod(temporary.path, 0o755) == 0)
        _ = try ReportDirectory(path: temporary.path + suffix)
        #expect(try mode(of: temporary.path) == 0o755)
        #expect(temporary.names.isEmpty, "the check leaves no file")
    }

    @Test func `what is no directory is refused`() throws {
        let file = try temporary.write("taken", "")
        for path in [file, file + "/below", file + "/"] {
            #expect(expectUnwritable(path)?.message.contains("\(file) is a file") == true)
        }
        #expect(expectUnwritable("")?.message.contains("empty") == true)
        #expect(expectUnwritable(temporary.path(String(repeating: "x", count: 300)))?.errno == ENAMETOOLONG)
        let link = temporary.path("link")
        try #require(symlink(temporary.path("missing"), link) == 0)
        #expect(expectUnwritable(link)?.errno == ENOENT)
    }

    /// Not even root can create a file in /proc (proc(5)).
    @Test func `an unwritable directory is refused with the system's reason`() throws {
        let error = try #require(expectUnwritable("/proc/self/fdinfo"))
        #expect(error.message.contains("/proc/self/fdinfo"))
        #expect(error.errno != nil)
        #expect(error.description.count > error.message.count)
        let missing = try #require(expectUnwritable("/proc/self/fdinfo/reports"))
        #expect(missing.message.contains("/proc/self/fdinfo/reports"))
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

@Suite struct ReportDirectoryTidyingTests {
    private let scratch: TemporaryDirectory
    private let directory: ReportDirectory

    init() throws {
        scratch = try TemporaryDirectory()
        directory = try ReportDirectory(path: scratch.path)
    }

    private func report(
        of process: ProcessIdentity? = nil, state: StallRecord.State = .ongoing, milliseconds: UInt64 = 400
    ) -> StallReport {
        var description = StallReport.ProcessDescription.current()
        if let process {
            description.pid = process.pid
            description.startTicks = process.startTicks
            description.bootID = process.bootID
        }
        return Reporter.Settings.fixture(process: description).builder()
            .report(of: .fixture(state: state, milliseconds: milliseconds))
    }

    private var parent: ProcessIdentity { get throws { try #require(ProcessIdentity(pid: getppid())) } }

    /// The files of a directory after these durations of stalls of one fingerprint.
    private func store(_ durations: [UInt64], stops: Bool = true) throws -> [StallReport] {
        var policy = RepeatPolicy(reportsPerMinute: 1_000_000)
        let sink = DirectorySink(directory, quota: ReportQuota(), counts: ReportCounts(), recovered: { _ in })
        for milliseconds in durations {
            var ended = report(state: .ended, milliseconds: milliseconds)
            ended.fingerprint = "9f2c41d07a3be815"
            let decision = policy.decide("a", lasting: ended.durationMilliseconds, at: 0)
            (ended.repeats, ended.repeated) = (decision.repeats.count, decision.repeats.durations)
            try sink.receive(.init(ended: ended, suppressed: decision.suppressed))
        }
        if stops { #expect(sink.finish().isEmpty) }
        return try scratch.reports()
    }

    private func total(_ reports: [StallReport]) -> Double {
        reports.reduce(0) { $0 + $1.durationMilliseconds + ($1.repeated?.totalMilliseconds ?? 0) }
    }

    @Test(arguments: [1, 2, 3, 5, 100, 127, 128, 129])
    func `the files stand for all stalls`(count: Int) throws {
        let durations = (0..<count).map { UInt64(300 + $0 * 7 % 90) }
        let reports = try store(durations)
        #expect(reports.reduce(0) { $0 + 1 + $1.repeats } == count)
        #expect(abs(total(reports) - Double(durations.reduce(0, +))) < 1)
        #expect(reports.allSatisfy { $0.fault == nil })
        #expect(reports.count <= count.bitWidth - count.leadingZeroBitCount + 1)
    }

    @Test func `the newest repeat of a killed process is kept`() throws {
        let reports = try store([300, 300, 300, 400, 500, 500, 700], stops: false)
        #expect(reports.reduce(0) { $0 + 1 + $1.repeats } == 7 && total(reports) == 3_000)
        let names = (directoryEntries(scratch.path) ?? []).map(\.name)
        let newest = try #require(names.first { $0.hasSuffix(StallReport.newestSuffix) })
        // This process runs, but no monitor of it keeps the file any more.
        for report in reports { OpenReports.remove(report.id) }
        _ = directory.recover()
        let after = Set((directoryEntries(scratch.path) ?? []).map(\.name))
        #expect(!after.contains(newest) && after.contains(newest.replacing(".newest", with: "")))
    }

    /// Pids are reused: only pid, start time and boot together identify a process.
    @Test func aLiveProcessMatchesPidStartTimeAndBoot() throws {
        let living = report(of: try parent)
        var (otherStart, otherBoot) = (try parent, try parent)
        otherStart.startTicks -= 1
        otherBoot.bootID = "0f0f0f0f-0000-4000-8000-000000000000"
        let gone = ProcessIdentity(pid: 0x3fffff, startTicks: 1, bootID: otherBoot.bootID)
        let left = [otherStart, otherBoot, gone].map { report(of: $0, milliseconds: 730) }
        for report in left + [living] { try directory.write(report) }
        let recovered = directory.recover()
        #expect(Set(recovered.map(\.id)) == Set(left.map(\.id)))
        #expect(recovered.allSatisfy { $0.state == .abandoned && $0.durationMilliseconds == 730 })
        let files = try scratch.reports()
        #expect(Set(files.filter { $0.state == .abandoned }.map(\.id)) == Set(left.map(\.id)))
        #expect(files.first { $0.id == living.id }?.state == .ongoing)
        #expect(directory.recover().isEmpty, "once")
    }

    @Test func `own reports are abandoned only without a monitor`() throws {
        let open = report()
        let left = report()
        for report in [open, left] { try directory.write(report) }
        OpenReports.insert(open.id)
        defer { OpenReports.remove(open.id) }
        #expect(directory.recover().map(\.id) == [left.id])
    }

    /// A redaction may remove it; the name of the lock still has it.
    @Test func `a report without its host's name has its process`() throws {
        let own = report()
        let living = report(of: try parent)
        let gone = report(of: ProcessIdentity(pid: 0x3f_ffff, startTicks: 1))
        var container = report()
        (container.process.pid, container.process.startTicks) = (1, 9)
        container.process.pidNamespace = "pid:[4026532222]"
        OpenReports.insert(own.id)
        defer { OpenReports.remove(own.id) }
        for var report in [own, living, gone, container] {
            report.process.hostname = ""
            try directory.write(report)
        }
        let process = ProcessIdentity(pid: 1, startTicks: 9, pidNamespace: "pid:[4026532222]")
        let lock = ReportDirectory.temporaryName(for: MonitorLock.fileName, of: process)
        try AtomicFile.write([], to: scratch.path(lock))
        #expect(Set(directory.recover().map(\.id)) == [gone.id, container.id])
    }

    /// Its process has another id there, or none; the lock of its monitor shows whether it runs.
    @Test func `a report of another PID namespace is open for a day where there is no lock`() throws {
        var report = report()
        report.process.pidNamespace = "pid:[4026532222]"
        let file = try directory.write(report)
        #expect(directory.recover().isEmpty)
        let old = Date(timeIntervalSinceNow: -90_000)
        try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: file)
        #expect(directory.recover().map(\.id) == [report.id])
    }

    @Test func `a directory that takes no report is found, and a check leaves nothing in it`() throws {
        let path = scratch.path("stalls")
        let directory = try ReportDirectory(path: path)
        try directory.check()
        #expect(directoryEntries(path)?.allSatisfy { [".", ".."].contains($0.name) } == true)
        try #require(rmdir(path) == 0)
        try directory.check()
        #expect(FileStatus(path: path)?.isDirectory == true, "as for the next report")
        // Another one in its place, in which nothing can be made.
        try #require(rmdir(path) == 0)
        try #require(symlink("/proc/self", path) == 0)
        #expect(throws: StallWatchError.self) { try directory.check() }
        try #require(unlink(path) == 0)
        _ = try scratch.write("stalls", "a file")
        #expect(throws: StallWatchError.self) { try directory.check() }
    }

    @Test func `reports stay in the directory, wherever its path leads`() throws {
        let (path, moved) = (scratch.path("stalls"), scratch.path("moved"))
        let directory = try ReportDirectory(path: path)
        try #require(rename(path, moved) == 0 && mkdir(path, 0o700) == 0)
        let name = try directory.write(report(state: .ended)).split(separator: "/").last.map(String.init)
        #expect((directoryEntries(moved) ?? []).map(\.name).filter { !$0.hasPrefix(".") } == [name])
        #expect(directory.enforce(ReportQuota(reports: 1)).removed == 0)
        let statistics = FixedFile(moved + "/statistics")
        try #require(rename(moved, scratch.path("again")) == 0)
        try AtomicFile.replace(statistics.name, in: statistics.directory, with: [1])
        #expect(FileStatus(path: scratch.path("again/statistics")) != nil)
    }

    @Test func aReportWithoutAProcessIdentityIsKept() throws {
        var report = report()
        report.process.startTicks = nil
        try directory.write(report)
        #expect(directory.recover().isEmpty)
    }

    @Test func `only ended processes' temporary files are removed`() throws {
        var gone = try parent
        gone.startTicks -= 1
        let container = ProcessIdentity(pid: 1, startTicks: 9, pidNamespace: "pid:[4026532222]", host: "9f2c41d07a3b")
        let names = [
            ".stall-x.json.\(gone).tmp", ".stall-x.json.\(try parent).tmp", ".stall-x.json.\(directory.owner).tmp",
            ".stall-x.json.\(container).tmp", ".stall-x.json.tmp", "notes.txt", "stall-broken.json",
        ]
        for name in names { try AtomicFile.write(Array("\"ongoing\"".utf8), to: scratch.path + "/" + name) }
        #expect(directory.recover().isEmpty)
        #expect(Set(scratch.names) == Set(names.dropFirst()))
    }

    @Test func anEmptyReportIsRemoved() throws {
        try AtomicFile.write([], to: scratch.path + "/stall-20261121T080000.000000Z-000000000000.json")
        #expect(directory.recover().isEmpty)
        #expect(scratch.names.isEmpty)
    }

    @Test func theOldestReportsAreRemovedFirst() throws {
        let reports = (0..<10).map { number in
            var report = report(state: .ended)
            report.startedAt = Timestamp(microsecondsSince1970: Int64(number) * 1_000_000)
            return report
        }
        for report in reports.shuffled() { try directory.write(report) }
        #expect(directory.enforce(ReportQuota(reports: 4)).removed == 6)
        #expect(try scratch.reports().map(\.id) == reports.suffix(4).map(\.id))
        let bytes = try scratch.reports().reduce(0) { $0 + $1.jsonData().count }
        #expect(directory.enforce(ReportQuota(reports: 4, bytes: bytes - 1)).removed == 1)
        #expect(try scratch.reports().map(\.id) == reports.suffix(3).map(\.id))
        #expect(directory.enforce(ReportQuota(reports: 3)).removed == 0)
    }

    /// The monitors of other processes share what comes between two listings.
    @Test(arguments: [(0, 16), (1, 8), (20, 0)])
    func `a directory with room is not listed for each report`(others: Int, unlisted: Int) throws {
        for _ in 0..<others {
            try scratch.write(ReportDirectory.temporaryName(for: MonitorLock.fileName, of: try parent), "")
        }
        let sink = DirectorySink(
            directory, quota: ReportQuota(reports: 100), counts: ReportCounts(), recovered: { _ in })
        sink.start()
        // Another process writes them.
        for number in 100..<300 { try scratch.write("stall-20261121T080000.000000Z-000000000\(number).json", "{}") }
        func count() -> Int { scratch.names.count(where: StallReport.isFileName) }
        for number in 0..<unlisted {
            try sink.receive(.init(ended: report(state: .ended)))
            #expect(count() == 201 + number)
        }
        for _ in 0..<3 {
            try sink.receive(.init(ended: report(state: .ended)))
            #expect(count() == 100)
        }
        #expect(sink.finish().isEmpty)
    }

    /// The first report of a process waits for what the start does.
    @Test func `of many reports some are removed at once, and the newest read`() throws {
        let most = ReportDirectory.maximumRemoved
        for number in 100_000..<100_050 + most {
            try scratch.write("stall-20200101T080000.000000Z-000000\(number).json", "{}")
        }
        for _ in 0..<2 { try directory.write(report(of: ProcessIdentity(pid: 0x3f_ffff, startTicks: 1))) }
        #expect(directory.recover(newest: 1).count == 1)
        let quota = ReportQuota(reports: 10)
        #expect(directory.enforce(quota).removed == most)
        #expect(directory.enforce(quota).removed == 42)
        #expect(directory.enforce(quota).removed == 0)
    }

    @Test func reportsOfOngoingStallsAreNeverRemoved() throws {
        let mine = report()
        OpenReports.insert(mine.id)
        defer { OpenReports.remove(mine.id) }
        let others = report(of: try parent)
        var gone = try parent
        gone.startTicks -= 1
        let left = report(of: gone)
        let over = report(state: .ended)
        for report in [mine, others, left, over] { try directory.write(report) }
        #expect(directory.enforce(ReportQuota(reports: 1)).removed == 2)
        #expect(Set(try scratch.reports().map(\.id)) == [mine.id, others.id])
    }

    @Test func aRemovedDirectoryIsCreatedAgain() throws {
        let path = scratch.path + "/stalls"
        let directory = try ReportDirectory(path: path)
        try FileManager.default.removeItem(atPath: path)
        let file = try directory.write(report())
        #expect(FileManager.default.fileExists(atPath: file))
    }

    @Test func `the identity of a process is read`() throws {
        let own = try #require(ProcessIdentity.current())
        #expect(own.isAlive == true)
        var (other, earlier, elsewhere) = (own, own, own)
        other.startTicks -= 1
        (earlier.bootID, elsewhere.pidNamespace) = ("0f0f0f0f-0000-4000-8000-000000000000", "4026532222")
        #expect(other.isAlive == false)
        #expect([earlier, elsewhere].allSatisfy { $0.isAlive == nil && ProcessIdentity($0.description) == $0 })
        let host = ProcessIdentity(pid: 1, startTicks: 2, host: "web_3.example.org/ä")
        #expect(host.host == "web-3-example-org--" && ProcessIdentity(host.description) == host)
        #expect(ProcessIdentity(own.description) == own)
    }
}
