import Dispatch
import Foundation
import Glibc
import LinuxSupport
import StallReports
import Synchronization
import TestSupport
import Testing

/// Reports outlive their process, whatever becomes of it.
@Suite(.serialized) struct ReportsSurvivalTests {
    private static let threshold = 20

    /// A stall that the host told of, in monotonic nanoseconds.
    private struct ToldStall {
        var began: UInt64
        var ended: UInt64?
    }

    private func stalls(_ lines: [String]) -> [ToldStall] {
        lines.reduce(into: []) { stalls, line in
            guard let time = UInt64(line.dropFirst(2)) else { return }
            if line.hasPrefix("B ") { stalls.append(ToldStall(began: time)) }
            if line.hasPrefix("E "), !stalls.isEmpty { stalls[stalls.count - 1].ended = time }
        }
    }

    @Test func killedAt200RandomMoments() throws {
        let scratch = try TemporaryDirectory()
        let faults = Collected<String>()
        let missing = Collected<String>()
        let disturbed = Collected<String>()
        let expected = Atomic<Int>(0)
        // Two at a time: a machine that is overloaded would be late for its own reasons.
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            for _ in 0..<100 {
                do {
                    try killOnce(in: scratch, faults, missing, disturbed, expected)
                } catch {
                    faults.add("\(error)")
                }
            }
        }
        #expect(faults.all == [])
        #expect(missing.all == [])
        withKnownIssue("the host gave this machine's CPUs to others", isIntermittent: true) {
            #expect(disturbed.all == [])
        }
        let count = expected.load(ordering: .relaxed)
        #expect(count >= 100, "most runs are killed in a stall that is old enough")
        #expect(disturbed.all.count < count / 2)

        // The next start finds what is left.
        #expect(try TestHost(["stalls", scratch.path, "\(Self.threshold)", "0", "1", "1"]).finish() == ["S 0"])
        let reports = try scratch.reports()
        #expect(reports.count >= count - missing.all.count - disturbed.all.count)
        #expect(reports.allSatisfy { $0.state == .abandoned || $0.state == .ended })
        #expect(reports.contains { $0.state == .abandoned })
        #expect(scratch.names == scratch.reportNames, "no temporary files")
        let result = try Repository.validateReports(scratch.path)
        #expect(result.status == 0, "\(result.text)")
    }

    private func killOnce(
        in scratch: TemporaryDirectory, _ faults: Collected<String>, _ missing: Collected<String>,
        _ disturbed: Collected<String>, _ expected: borrowing Atomic<Int>
    ) throws {
        let stolen = CPUSteal()
        let before = Set(scratch.reportNames)
        // Two stalls: a third of the same kind would be held back as a repeat.
        let host = try TestHost(["stalls", scratch.path, "\(Self.threshold)", "2", "150", "300"])
        usleep(UInt32.random(in: 60_000...500_000))
        let killed = monotonicNanoseconds()
        kill(host.pid, SIGKILL)
        let told = stalls(host.finish())
        let offset = Int64(Date().timeIntervalSince1970 * 1_000_000) - Int64(monotonicNanoseconds() / 1_000)
        var reports: [StallReport] = []
        for name in scratch.reportNames where !before.contains(name) {
            // The other lane's files come and go.
            guard let report = try? scratch.report(name) else {
                faults.add("\(name) cannot be read")
                continue
            }
            if report.process.pid == host.pid { reports.append(report) }
        }
        for stall in told where (stall.ended ?? killed) > stall.began + UInt64(Self.threshold + 100) * 1_000_000 {
            expected.add(1, ordering: .relaxed)
            let began = Int64(stall.began / 1_000) + offset
            let isThere = reports.contains { abs($0.startedAt.microsecondsSince1970 - began) < 30_000 }
            if !isThere {
                let others = reports.map { report in
                    "\(report.startedAt.microsecondsSince1970 - began) us later, \(report.monitor.suppressed)"
                }
                (stolen.isDisturbing ? disturbed : missing).add(
                    "no report of a stall, killed after \((killed - stall.began) / 1_000_000) ms; there are \(others)"
                )
            }
        }
    }

    @Test(.repeatedWhileCPUIsStolen) func twoProcessesAndFiveRestartsInOneDirectory() throws {
        let scratch = try TemporaryDirectory()
        for _ in 0..<5 {
            let hosts = try (0..<2).map { _ in
                try TestHost(["stalls", scratch.path, "\(Self.threshold)", "2", "60", "90"])
            }
            for host in hosts { #expect(host.finish().last == "S 2") }
        }
        let reports = try scratch.reports()
        #expect(reports.count == 20)
        #expect(Set(reports.map(\.id)).count == 20)
        #expect(Set(reports.map(\.process.pid)).count == 10)
        #expect(reports.allSatisfy { $0.state == .ended })
        #expect(scratch.names == scratch.reportNames)
        #expect(
            Set(reports.compactMap(\.fingerprint)).count == 1, "the same function, in ten processes at random addresses"
        )
        let result = try Repository.validateReports(scratch.path)
        #expect(result.status == 0, "\(result.text)")
    }

    /// Skipped, and shown as such, where neither root nor user namespaces are to be had.
    @Test(.enabled(if: ownMounts != nil, "needs root or user namespaces"))
    func aFullDiskAndADirectoryThatIsDeleted() throws {
        let scratch = try TemporaryDirectory()
        let host = try TestHost(["full-disk", scratch.path], wrapper: #require(ownMounts))
        let lines = host.finish().filter { !$0.hasPrefix("B ") && !$0.hasPrefix("E ") && $0.count > 1 }
        #expect(host.process.terminationStatus == 0)
        #expect(
            lines == [
                "full: reports 1, failures true", "free: reports 3", "deleted: reports 1, temporary 0",
                "stalls 4, lost 0",
            ]
        )
    }

    /// What can be tried everywhere: no file may be larger than a few bytes.
    @Test func filesThatCannotGrow() throws {
        let scratch = try TemporaryDirectory()
        let host = try TestHost(["small-files", scratch.path])
        let lines = host.finish().filter { !$0.hasPrefix("B ") && !$0.hasPrefix("E ") && $0.count > 1 }
        #expect(host.process.terminationStatus == 0)
        #expect(lines == ["small: reports 0, failures true", "large: reports 1, temporary 0", "stalls 1, lost 0"])
    }

    @Test func aProcessThatDoesNotComeBackAbortsWithItsReportOnDisk() throws {
        let scratch = try TemporaryDirectory()
        let host = try TestHost(["escalate", scratch.path])
        let lines = host.finish()
        #expect(host.process.terminationReason == .uncaughtSignal)
        #expect(host.process.terminationStatus == SIGABRT)
        #expect(lines.count == 1, "it did not come back")
        let report = try #require(try scratch.reports().first)
        #expect(report.state == .ongoing)
        #expect(report.durationMilliseconds >= 250)
        #expect(try TestHost(["stalls", scratch.path, "20", "0", "1", "1"]).finish() == ["S 0"])
        #expect(try scratch.reports().map(\.state) == [.abandoned])
    }
}

/// The command (unshare(1)) that gives a process mounts of its own; `nil` where that is not allowed.
private let ownMounts: [String]? = [["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]].first {
    wrapper in
    guard let scratch = try? TemporaryDirectory(),
        let host = try? TestHost(["can-mount", scratch.path], wrapper: wrapper)
    else {
        return false
    }
    _ = host.finish()
    return host.process.terminationStatus == 0
}
