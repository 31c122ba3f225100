import Dispatch
import Foundation
import Glibc
import LinuxSupport
import StallReports
import Synchronization
import Testing
import TestSupport

/// Reports outlive their process, however it ends.
@Suite(.serialized) struct ReportsSurvivalTests {
    private let scratch = TemporaryDirectory.ofTest()

    private static let threshold = 20

    /// A stall on the test host's standard output, in monotonic nanoseconds.
    private struct InjectedStall {
        var began: UInt64
        var ended: UInt64?
    }

    private func stalls(_ lines: [String]) -> [InjectedStall] {
        lines.reduce(into: []) { stalls, line in
            guard let time = UInt64(line.dropFirst(2)) else { return }
            if line.hasPrefix("B ") { stalls.append(InjectedStall(began: time)) }
            if line.hasPrefix("E "), !stalls.isEmpty { stalls[stalls.count - 1].ended = time }
        }
    }

    private struct Kills {
        var faults: [String] = []
        /// The stalls that had to be on disk when the process was killed.
        var expected = 0
        var late: [String] = []
        /// Runs that are not judged: the host kept a CPU for so long that the monitor had to suppress stalls.
        var inconclusive = 0
    }

    /// The number of runs in two hundred that may be inconclusive.
    private static let inconclusiveLimit = 10
    /// The number of reports in about 180 that may be later than ``writingTime``: the machine keeps a thread waiting for
    /// longer now and then, where the host's accounts show nothing.
    private static let lateLimit = 2
    /// The watchdog suppresses stalls when it is later than this, in nanoseconds: `GapDetector.tolerance`.
    private static let suppressedLateness: UInt64 = 50_000_000
    /// How long after the threshold a report has to be on disk, in nanoseconds.
    private static let writingTime: UInt64 = 100_000_000

    /// In memory, as a disk that is busy with other files decides how long a report takes, and it is not the subject here.
    @Test func killedAt200RandomMoments() throws {
        let scratch = try TemporaryDirectory(isInMemory: true)
        let kills = Mutex(Kills())
        // Two at a time: on an overloaded machine the reports would be late.
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            for _ in 0..<100 {
                do {
                    try killOnce(in: scratch, kills)
                } catch {
                    kills.withLock { $0.faults.append("\(error)") }
                }
            }
        }
        let result = kills.withLock { $0 }
        print(
            "200 kills: \(result.expected) reports expected, \(result.inconclusive) runs inconclusive, late: \(result.late)"
        )
        #expect(result.faults == [])
        #expect(result.late.count <= Self.lateLimit, "\(result.late)")
        #expect(result.inconclusive <= Self.inconclusiveLimit)
        #expect(result.expected >= 100, "most runs are killed in a stall that is old enough")

        // The next start marks the open reports.
        #expect(try TestHost(["stalls", scratch.path, "\(Self.threshold)", "0", "1", "1"]).finish() == ["S 0"])
        let reports = try scratch.reports()
        #expect(reports.count >= result.expected - result.late.count)
        #expect(reports.allSatisfy { $0.state == .abandoned || $0.state == .ended })
        #expect(reports.contains { $0.state == .abandoned })
        #expect(scratch.names == scratch.reportNames, "no temporary files")
        try Repository.validateReports(scratch.path).expectNoFault()
    }

    private func killOnce(in scratch: TemporaryDirectory, _ kills: borrowing Mutex<Kills>) throws {
        let steal = CPUSteal()
        let before = Set(scratch.reportNames)
        // Two stalls: the third of the same kind would be suppressed as a repeat.
        let host = try TestHost(["stalls", scratch.path, "\(Self.threshold)", "2", "150", "300"])
        usleep(UInt32.random(in: 60_000...500_000))
        let killed = monotonicNow()
        kill(host.pid, SIGKILL)
        let injected = stalls(host.finish())
        let offset = Int64(Date().timeIntervalSince1970 * 1_000_000) - Int64(monotonicNow() / 1_000)
        // Decided by the host alone, before any report is read.
        let isConclusive = steal.longest(until: CPUSteal()) < Self.suppressedLateness
        var reports: [StallReport] = []
        for name in scratch.reportNames where !before.contains(name) {
            guard let report = try? scratch.report(name) else {
                kills.withLock { $0.faults.append("\(name) cannot be read") }
                continue
            }
            // The other lane's reports are in the same directory.
            if report.process.pid == host.pid { reports.append(report) }
        }
        guard isConclusive else { return kills.withLock { $0.inconclusive += 1 } }
        let oldEnough = UInt64(Self.threshold) * 1_000_000 + Self.writingTime
        for stall in injected where (stall.ended ?? killed) > stall.began + oldEnough {
            let began = Int64(stall.began / 1_000) + offset
            let isThere = reports.contains { abs($0.startedAt.microsecondsSince1970 - began) < 30_000 }
            let others = reports.map { report in
                "\(report.startedAt.microsecondsSince1970 - began) us later, \(report.monitor.suppressed)"
            }
            kills.withLock { kills in
                kills.expected += 1
                if isThere { return }
                let age = (killed - stall.began) / 1_000_000
                let unfinished = scratch.names.filter { $0.hasSuffix(".tmp") }
                kills.late.append(
                    "no report of a stall that began \(age) ms before the kill; unfinished files: \(unfinished), "
                        + "other reports: \(others)"
                )
            }
        }
    }

    @Test func `two processes and five restarts share a directory`() throws {
        for _ in 0..<5 {
            // Long enough for a watchdog that starts beside busy threads: in a debug build that takes 20 ms of CPU time.
            let hosts = try (0..<2).map { _ in
                try TestHost(["stalls", scratch.path, "\(Self.threshold)", "2", "260", "400"])
            }
            for host in hosts { #expect(host.finish().last == "S 2") }
        }
        let reports = try scratch.reports()
        #expect(reports.count == 20)
        #expect(Set(reports.map(\.id)).count == 20)
        #expect(Set(reports.map(\.process.pid)).count == 10)
        #expect(reports.allSatisfy { $0.state == .ended })
        #expect(scratch.names == scratch.reportNames)
        // A watchdog that got no CPU has seen the stall, but not where it was.
        let seen = reports.filter { $0.samples.contains(where: \.isValid) }
        #expect(seen.count >= 10)
        #expect(
            Set(seen.compactMap(\.fingerprint)).count == 1, "the same function, in ten processes at random addresses"
        )
        #expect(Set(reports.compactMap(\.culprit?.function)).count == 1)
        try Repository.validateReports(scratch.path).expectNoFault()
    }

    @Test(.enabled(if: ownMounts != nil, "needs root or user namespaces"))
    func aFullDiskAndADeletedDirectoryLoseNothing() throws {
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

    /// Needs no right: no file may be larger than a few bytes.
    @Test func filesThatCannotGrowAreCountedAsFailures() throws {
        let host = try TestHost(["small-files", scratch.path])
        let lines = host.finish().filter { !$0.hasPrefix("B ") && !$0.hasPrefix("E ") && $0.count > 1 }
        #expect(host.process.terminationStatus == 0)
        #expect(lines == ["small: reports 0, failures true", "large: reports 1, temporary 0", "stalls 1, lost 0"])
    }
}

/// The unshare(1) command that gives a process its own mounts; `nil` if the system does not permit it.
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

/// A deadlock never ends, so its report must be complete on disk before the process is killed.
@Suite(.serialized) struct DeadlockReportTests {
    private static let threshold = 100

    @Test func `a deadlock is on disk within a second with all stacks`() throws {
        let directory = try TemporaryDirectory()
        let host = try TestHost(["deadlock", directory.path, "\(Self.threshold)"])
        let isReported = eventually { (try? directory.reports())?.contains(where: \.isWholeDeadlock) ?? false }
        let seen = monotonicNow()
        // The second stage adds the names later.
        let isNamed = eventually { (try? directory.reports())?.contains { !bystander(of: $0).isEmpty } ?? false }
        kill(host.pid, SIGKILL)
        let lines = host.finish()
        try #require(isReported && isNamed)
        #expect(lines.count == 1, "the deadlock ended: \(lines)")
        let began = try #require(lines.first.flatMap { UInt64($0.dropFirst(2)) })
        #expect(seen - began < UInt64(Self.threshold + 1_000) * 1_000_000, "\((seen - began) / 1_000_000) ms")

        // The process may leave a temporary file if it is killed while writing; the next start removes it.
        #expect(directory.reportNames.count == 1)
        let report = try #require(try directory.reports().first)
        #expect(report.state == .ongoing)
        let cause = try #require(report.cause)
        #expect(cause.kind == .deadlock)
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
            && otherThreads.allSatisfy { $0.stack.map { !stacks[$0].isEmpty } ?? false }
    }
}

/// The scenarios where fsync(2) is refused, as by some file systems and container profiles.
@Suite(.serialized) struct RefusedFlushTests {
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
        #expect(result.reason == .exit && result.status == 0, "\(result.text)")
        let files = try FileManager.default.contentsOfDirectory(atPath: reports)
        #expect(files.contains { $0.hasSuffix(".json") })
        #expect(!files.contains { $0.hasSuffix(".tmp") })
    }
}
