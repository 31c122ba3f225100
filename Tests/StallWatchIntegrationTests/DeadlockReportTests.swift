import Glibc
import StallReports
import TestSupport
import Testing

/// A deadlock never ends, so its report must be there and whole before somebody ends the process.
@Suite(.serialized) struct DeadlockReportTests {
    private static let threshold = 100

    @Test func aDeadlockIsOnDiskWithinASecondWithAllStacks() throws {
        let directory = try TemporaryDirectory()
        let host = try TestHost(["deadlock", directory.path, "\(Self.threshold)"])
        let isReported = eventually { (try? directory.reports())?.contains(where: \.isWholeDeadlock) ?? false }
        let seen = monotonicNanoseconds()
        // Names follow as soon as they are known.
        let isNamed = eventually { (try? directory.reports())?.contains { !bystander(of: $0).isEmpty } ?? false }
        kill(host.pid, SIGKILL)
        let lines = host.finish()
        try #require(isReported && isNamed)
        #expect(lines.count == 1, "it did not come back: \(lines)")
        let began = try #require(lines.first.flatMap { UInt64($0.dropFirst(2)) })
        #expect(seen - began < UInt64(Self.threshold + 1_000) * 1_000_000, "\((seen - began) / 1_000_000) ms")

        // What the process leaves behind, and perhaps a file that it was killed over: the next start takes that away.
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
    /// Whether it says that there is a deadlock, and has the stack of every thread.
    fileprivate var isWholeDeadlock: Bool {
        guard cause?.kind == .deadlock, let otherThreads, !otherThreads.isEmpty else { return false }
        return samples.contains { $0.stack != nil }
            && otherThreads.allSatisfy { $0.stack.map { !stacks[$0].isEmpty } ?? false }
    }
}
