import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

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

    @Test func reportsOfAnEndedProcessBecomeAbandoned() throws {
        var gone = try parent
        gone.startTicks -= 1
        let left = report(of: gone, milliseconds: 730)
        try directory.write(left)
        let recovered = directory.recover()
        #expect(recovered.map(\.id) == [left.id])
        #expect(recovered.map(\.state) == [.abandoned])
        #expect(recovered.map(\.durationMilliseconds) == [730])
        #expect(try scratch.reports() == recovered)
        #expect(directory.recover().isEmpty, "once")
    }

    /// Pids are reused: only pid, start time and boot together identify a process.
    @Test func aLiveProcessMatchesPidStartTimeAndBoot() throws {
        let living = report(of: try parent)
        var otherBoot = try parent
        otherBoot.bootID = "0f0f0f0f-0000-4000-8000-000000000000"
        let beforeReboot = report(of: otherBoot)
        let gone = report(of: ProcessIdentity(pid: 0x3fffff, startTicks: 1, bootID: otherBoot.bootID))
        for report in [living, beforeReboot, gone] { try directory.write(report) }
        #expect(Set(directory.recover().map(\.id)) == [beforeReboot.id, gone.id])
        #expect(try scratch.reports().first { $0.id == living.id }?.state == .ongoing)
    }

    @Test func ownReportsAreAbandonedOnlyWithoutAMonitor() throws {
        let open = report()
        let left = report()
        for report in [open, left] { try directory.write(report) }
        OpenReports.insert(open.id)
        defer { OpenReports.remove(open.id) }
        #expect(directory.recover().map(\.id) == [left.id])
    }

    @Test func aReportWithoutAProcessIdentityIsKept() throws {
        var report = report()
        report.process.startTicks = nil
        try directory.write(report)
        #expect(directory.recover().isEmpty)
    }

    @Test func onlyEndedProcessesTemporaryFilesAreRemoved() throws {
        var gone = try parent
        gone.startTicks -= 1
        let names = [
            ".stall-x.json.\(gone).tmp", ".stall-x.json.\(try parent).tmp", ".stall-x.json.\(directory.owner).tmp",
            ".stall-x.json.tmp", "notes.txt", "stall-broken.json",
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
        #expect(directory.enforce(ReportQuota(reports: 4)) == 6)
        #expect(try scratch.reports().map(\.id) == reports.suffix(4).map(\.id))
        let bytes = try scratch.reports().reduce(0) { $0 + $1.jsonData().count }
        #expect(directory.enforce(ReportQuota(reports: 4, bytes: bytes - 1)) == 1)
        #expect(try scratch.reports().map(\.id) == reports.suffix(3).map(\.id))
        #expect(directory.enforce(ReportQuota(reports: 3)) == 0)
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
        #expect(directory.enforce(ReportQuota(reports: 1)) == 2)
        #expect(Set(try scratch.reports().map(\.id)) == [mine.id, others.id])
    }

    @Test func onlyTheOwnerMayReadFiles() throws {
        let path = scratch.path + "/new/stalls"
        let directory = try ReportDirectory(path: path)
        let file = try directory.write(report())
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(path) == 0o700)
        #expect(try mode(file) == 0o600)
    }

    @Test func aRemovedDirectoryIsCreatedAgain() throws {
        let path = scratch.path + "/stalls"
        let directory = try ReportDirectory(path: path)
        try FileManager.default.removeItem(atPath: path)
        let file = try directory.write(report())
        #expect(FileManager.default.fileExists(atPath: file))
    }

    @Test func startTimeAndThreadsAreReadFromStat() throws {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 5 0 4242 23"
        #expect(ProcessStat("4700 (a) b (c) \(fields)")?.startTicks == 4242)
        #expect(ProcessStat("4700 (a) b (c) \(fields)")?.threads == 5)
        #expect(ProcessStat("4700 (a) b (c) \(fields)")?.state == "S")
        #expect(ProcessStat("nonsense") == nil)
        #expect(ProcessStat("4700 (a) \(fields)".replacingOccurrences(of: "4242", with: "x")) == nil)
        let own = try #require(ProcessIdentity.current())
        #expect(own.isAlive)
        #expect(ProcessIdentity(own.description) == own)
    }
}
