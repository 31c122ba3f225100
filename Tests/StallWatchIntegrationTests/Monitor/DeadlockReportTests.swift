import Glibc
import StallReports
import TestSupport
import Testing

/// A deadlock never ends, so its report must be complete on disk before the process is killed.
@Suite(.serialized) struct DeadlockReportTests {
    private static let threshold = 100

    @Test func aDeadlockIsOnDiskWithinASecondWithAllStacks() throws {
        let directory = try TemporaryDirectory()
        let host = try TestHost(["deadlock", directory.path, "\(Self.threshold)"])
        let isReported = eventually { (try? directory.reports())?.contains(where: \.isWholeDeadlock) ?? false }
        let seen = monotonicNanoseconds()
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
        let result = try Repository.validateReports(directory.path)
        #expect(result.status == 0, "\(result.text)")
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
    /// Returns whether the report shows a deadlock and has the stacks of all threads.
    fileprivate var isWholeDeadlock: Bool {
        guard cause?.kind == .deadlock, let otherThreads, !otherThreads.isEmpty else { return false }
        return samples.contains { $0.stack != nil }
            && otherThreads.allSatisfy { $0.stack.map { !stacks[$0].isEmpty } ?? false }
    }
}
