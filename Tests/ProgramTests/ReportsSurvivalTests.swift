import Dispatch
import Foundation
import Glibc
import LinuxSupport
import StackCapture
import StallReports
import Testing
import TestSupport

extension Command {
    /// The words before a program that make it process 1 of a PID namespace with its own /proc; `nil` where that is refused.
    static func container() throws -> [String]? {
        let words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return try Command(program: "/usr/bin/env", arguments: words + ["true"]).run().status == 0 ? words : nil
    }
}

/// Reports outlive their process, however it ends; `UnwritableReportsTests` are about disks that take none.
@Suite struct ReportsSurvivalTests {
    private let scratch = TemporaryDirectory.ofTest()

    /// The runs of each of two lanes.
    private static let runs = rounds(8)

    /// What a lane has found; each has a directory of its own.
    private struct Kills {
        var faults: [String] = []
        /// The reports that were on disk when their process was killed.
        var expected = 0
    }

    /// In memory, as a disk that is busy with other files decides how long a report takes, and it is not the subject here.
    @Test func killedAtRandomMoments() throws {
        let lanes = try (0..<2).map { _ in try TemporaryDirectory(isInMemory: true) }
        let kills = lanes.map { _ in Collected<Kills>() }
        DispatchQueue.concurrentPerform(iterations: lanes.count) { lane in
            var found = Kills()
            for run in 0..<Self.runs {
                // In every second run when a report appears: its stall lasts for some time.
                do {
                    try killOnce(in: lanes[lane], whenReported: run % 2 == 0, &found)
                } catch {
                    found.faults.append("\(error)")
                }
            }
            kills[lane].add(found)
        }
        for (lane, found) in zip(lanes, kills) {
            let result = try #require(found.all.first)
            print("\(Self.runs) kills: \(result.expected) reports were on disk")
            #expect(result.faults == [])
            #expect(result.expected >= Self.runs / 2)
            // The next start marks the open reports.
            #expect(try TestHost(["stalls", lane.path, "20", "0", "1", "1"]).finish() == ["S 0"])
            let reports = try lane.reports()
            #expect(reports.count >= result.expected)
            #expect(reports.allSatisfy { $0.state == .abandoned || $0.state == .ended })
            #expect(reports.contains { $0.state == .abandoned })
            #expect(lane.names == lane.reportNames, "no temporary files")
            try Repository.validateReports(lane.path).expectNoFault()
        }
    }

    private func killOnce(in scratch: TemporaryDirectory, whenReported: Bool, _ kills: inout Kills) throws {
        let before = Set(scratch.reportNames)
        // Two stalls: the third of the same kind would be suppressed as a repeat.
        let host = try TestHost(["stalls", scratch.path, "20", "2", "150", "300"])
        if whenReported {
            if !eventually({ !before.isSuperset(of: scratch.reportNames) }) { kills.faults.append("no report") }
        } else {
            usleep(UInt32.random(in: 0...500_000))
        }
        let seen = Set(scratch.reportNames).subtracting(before)
        kill(host.pid, SIGKILL)
        _ = host.finish()
        let left = Set(scratch.reportNames).subtracting(before)
        kills.expected += seen.count
        if !left.isSuperset(of: seen) { kills.faults.append("\(seen) was on disk, and \(left) is") }
        for name in left {
            guard let report = try? scratch.report(name) else {
                kills.faults.append("\(name) cannot be read")
                continue
            }
            if report.process.pid != host.pid { kills.faults.append("\(name) is of process \(report.process.pid)") }
        }
    }

    /// Each container has a process 1, and its own /proc.
    @Test(.enabled(if: geteuid() == 0, "needs root, for PID namespaces"))
    func `containers share a directory`() throws {
        guard let wrapper = try Command.container() else { return notRun("namespaces are refused") }
        func container(_ stalls: Int, lasting milliseconds: Int) throws -> TestHost {
            try TestHost(
                ["stalls", scratch.path, "100", "\(stalls)", "\(milliseconds)", "\(milliseconds)"],
                wrapper: wrapper)
        }
        /// The state of the stall's report once it has names; those of turns that a busy machine delays have ended.
        func states() throws -> [StallState] {
            try scratch.reports().filter { $0.isOfTestHost || $0.state != .ended }.map(\.state)
        }
        let first = try container(1, lasting: 600_000)
        #expect(eventually { (try? scratch.reports())?.contains { $0.isOfTestHost } == true })
        #expect(try container(0, lasting: 1).finish() == ["S 0"])
        #expect(try states() == [.ongoing], "it still runs")
        kill(first.pid, SIGKILL)
        _ = first.finish()
        #expect(try container(0, lasting: 1).finish() == ["S 0"])
        #expect(try states() == [.abandoned])
        #expect(scratch.names == scratch.reportNames, "no locks are left")
    }

    /// In memory: the last states have to be on disk before the processes end.
    @Test func `two processes and five restarts share a directory`() throws {
        let scratch = try TemporaryDirectory(isInMemory: true)
        for _ in 0..<5 {
            let hosts = try (0..<2).map { _ in try TestHost(["stalls", scratch.path, "100", "2", "260", "400"]) }
            for host in hosts { #expect(host.finish().last?.hasPrefix("S ") == true) }
        }
        // A busy machine adds stalls of its own.
        let reports = try scratch.reports()
        #expect(reports.count >= 20)
        #expect(Set(reports.map(\.id)).count == reports.count)
        #expect(Set(reports.map(\.process.pid)).count == 10)
        #expect(reports.allSatisfy { $0.state == .ended })
        #expect(scratch.names == scratch.reportNames)
        // A watchdog that got no CPU has seen the stall, but not where it was.
        let located = reports.filter(\.isOfTestHost)
        #expect(located.count >= 10)
        #expect(
            Set(located.compactMap(\.fingerprint)).count == 1, "the same function, in ten processes at random addresses"
        )
        try Repository.validateReports(scratch.path).expectNoFault()
    }
}

/// The monitor's threads have settings of their own, whatever those of the program are.
@Suite(.serialized) struct ProgramSettingsTests {
    private let scratch = TemporaryDirectory.ofTest()

    @Test(
        .needs("chrt"), .needs("taskset"), .needs("prlimit"),
        arguments: [
            ["nice", "-n", "19", "taskset", "-c", "0"], ["taskset", "-c", "0", "chrt", "--fifo", "50"],
            ["taskset", "-c", "0", "chrt", "--rr", "50"], ["chrt", "--batch", "0"],
            ["prlimit", "--rttime=2000000:2000000", "chrt", "--fifo", "50"],
            ["sh", "-c", "ulimit -s 128; exec \"$@\"", "sh"],
            ["sh", "-c", "ulimit -s unlimited; exec \"$@\"", "sh"],
        ])
    func `a program is watched under`(settings: [String]) throws {
        guard try Command(program: "/usr/bin/env", arguments: settings + ["true"]).run().status == 0 else {
            return notRun("\(settings.joined(separator: " ")) is not permitted")
        }
        _ = try TestHost.stall(milliseconds: 300, in: scratch, wrapper: settings)
    }
}

/// A deadlock never ends, so its report must be complete on disk before the process is killed.
@Suite struct DeadlockReportTests {
    @Test func `a deadlock is on disk while it lasts with all stacks`() throws {
        let directory = try TemporaryDirectory()
        let host = try TestHost(["deadlock", directory.path, "100"])
        // The second stage adds the names later.
        let isNamed = eventually(every: 50) {
            (try? directory.reports())?.contains { $0.isWholeDeadlock && !bystander(of: $0).isEmpty } ?? false
        }
        kill(host.pid, SIGKILL)
        let lines = host.finish()
        try #require(isNamed)
        #expect(lines.count == 1, "the deadlock ended: \(lines)")

        // The process may leave a temporary file if it is killed while writing; the next start removes it.
        let deadlocks = try directory.reports().filter { $0.cause?.kind == .deadlock }
        #expect(deadlocks.count == 1)
        let report = try #require(deadlocks.first)
        #expect(report.state == .ongoing)
        let cause = try #require(report.cause)
        #expect(cause.confidence == .certain)
        let lock = try #require(cause.lock)
        #expect(lock.isDeadlock)
        #expect(lock.owners.map(\.thread.name) == ["other-side", "stallwatch-test"])
        #expect(lock.owners.map(\.waitsFor) == [.pthreadMutex, .pthreadMutex])
        let owner = functions(lock.owners.first?.stack, of: report)
        #expect(owner.contains { $0.contains("pthread_mutex_lock") }, "\(owner)")
        #expect(cause.summary.contains("\"other-side\""), "\(cause.summary)")
        let others = try #require(report.otherThreads)
        #expect(others.allSatisfy { $0.stack != nil }, "\(others)")
        #expect(Set(others.compactMap(\.thread.name)).isSuperset(of: ["other-side", "bystander"]))
        let paused = bystander(of: report)
        #expect(paused.contains { $0.hasSuffix("pause") }, "\(paused)")
        try Repository.validateReports(directory.path).expectNoFault()
    }

    private func bystander(of report: StallReport) -> [String] {
        functions(report.otherThreads?.first { $0.thread.name == "bystander" }?.stack, of: report)
    }

    private func functions(_ stack: Int?, of report: StallReport) -> [String] {
        guard let stack else { return [] }
        return report.stacks[stack].compactMap { report.frames[$0].function }
    }
}

extension StallReport {
    fileprivate var isWholeDeadlock: Bool {
        guard cause?.kind == .deadlock, let otherThreads, !otherThreads.isEmpty else { return false }
        return samples.contains { $0.stack != nil }
            && otherThreads.allSatisfy { thread in thread.stack.map { !stacks[$0].isEmpty } ?? false }
    }
}

/// The scenarios where fsync(2) is refused, as by some file systems and container profiles.
@Suite struct RefusedFlushTests {
    @Test(arguments: [EPERM, EINVAL, ENOSYS])
    func `reports are written where fsync is refused`(error: Int32) throws {
        let directory = try TemporaryDirectory()
        let reports = directory.path("reports")
        let result = try Command(
            program: try Command.product("stallwatch-scenarios"),
            arguments: ["--scenario", "sleep", "--quiet", "--output", reports],
            environment: [
                "LD_PRELOAD": try Preload.forbid.make(in: directory),
                "FORBID_CALLS": "fsync:\(error),fdatasync:\(error)",
            ]
        ).run()
        // Its status says whether the duration is right, too, which other programs disturb.
        #expect(result.reason == .exit, "\(result.text)")
        let files = try FileManager.default.contentsOfDirectory(atPath: reports)
        #expect(files.contains { $0.hasSuffix(".json") })
        #expect(!files.contains { $0.hasSuffix(".tmp") })
    }
}
