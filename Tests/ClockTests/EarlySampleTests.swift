import Foundation
import Glibc
import LinuxSupport
import StallReports
import StallWatch
import TestSupport
import Testing

/// Stalls of two functions, one after the other: the report must tell how long each of them took.
@Suite(.serialized) struct EarlySampleTests {
    enum Activity: String, CaseIterable {
        case cpu, sleep
    }

    private static let tolerance = 0.05

    /// A report and the share of its duration that the first function took.
    private struct Measured: CustomStringConvertible {
        var report: StallReport
        var actual: Double
        var first: String

        var share: Double {
            var weight = 0.0
            for sample in report.samples {
                let functions = (sample.stack.map { report.stacks[$0] } ?? []).map { report.frames[$0].function }
                if functions.contains(first) { weight += sample.weightMilliseconds ?? 0 }
            }
            return weight / report.durationMilliseconds
        }

        var isExact: Bool { abs(share - actual) <= EarlySampleTests.tolerance && isEarly }
        var isEarly: Bool { report.samples.contains { $0.isEarly == true } }
        /// Whether the thread had its CPU: one that competes for it is not stopped early.
        var isJudged: Bool { (report.cause?.runQueueMilliseconds ?? .infinity) <= report.durationMilliseconds / 10 }

        var description: String {
            "\(first) has \(share) and took \(actual) of \(report.durationMilliseconds) ms, \(report.samples.count) samples"
        }
    }

    @Test(arguments: Activity.allCases, [80, 20])
    func bothPhasesHaveTheirShare(activity: Activity, percent: Int) async throws {
        func measure() async throws -> Measured {
            try await remeasured(
                { try stall(activity, 500 * percent / 100, 500 - 500 * percent / 100, threshold: 200) },
                until: \.isExact)
        }
        var measured = try await measure()
        for _ in 0..<4 where !measured.isExact && !measured.isJudged { measured = try await measure() }
        print("\(activity) \(percent)/\(100 - percent): \(measured)")
        if !measured.isExact, !measured.isJudged { return notRun("other programs had the CPUs") }
        #expect(measured.isExact, "\(measured)")
        let weights = measured.report.samples.compactMap(\.weightMilliseconds)
        #expect(abs(weights.reduce(0, +) - measured.report.durationMilliseconds) < 0.1)
        #expect(measured.isEarly)
        let culprit = try #require(measured.report.culprit)
        #expect((culprit.function == measured.first) == (percent == 80))
        #expect(abs((culprit.share ?? 0) - max(measured.actual, 1 - measured.actual)) <= Self.tolerance)
    }

    private func stall(_ activity: Activity, _ first: Int, _ second: Int, threshold: Int) throws -> Measured {
        let directory = try TemporaryDirectory()
        let probe = LoopProbe(label: "phases")
        // The names have to be there, and those of the tests' file may take longer than a program would wait.
        var lookup = SymbolicationSettings.names
        lookup.timeLimit = .seconds(4)
        let monitor = try StallMonitor(
            .init(
                threshold: .milliseconds(threshold), outputs: [.directory(directory.path)],
                symbols: .init(lookup: lookup)))
        try monitor.watch(.probe(probe))
        try monitor.start()
        var times: [UInt64] = []
        onOwnThread {
            func now() { times.append(monotonicNow()) }
            now()
            switch activity {
            case .cpu:
                firstComputes(until: times[0] + UInt64(first) * 1_000_000) { probe.beginTurn() }
                now()
                secondComputes(until: times[1] + UInt64(second) * 1_000_000)
            case .sleep:
                probe.beginTurn()
                firstSleeps(UInt32(first) * 1_000)
                now()
                secondSleeps(UInt32(second) * 1_000)
            }
            now()
            probe.endTurn()
        }
        // A stop waits for the names for a second only.
        #expect(monitor.settle([probe.label], until: endOfPatience))
        monitor.stop()
        let report = try #require(try directory.reports().first)
        let name = activity == .cpu ? "firstComputes(until:_:)" : "firstSleeps(_:)"
        return Measured(report: report, actual: Double(times[1] - times[0]) / Double(times[2] - times[0]), first: name)
    }
}

/// Runs `body` on a thread of its own, so that its stack has no frames of the test's own task.
private func onOwnThread(_ body: @escaping () -> Void) {
    // The caller waits until the thread has run it, so the two never use its variables at the same time.
    nonisolated(unsafe) let body = body
    let hasEnded = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        body()
        hasEnded.signal()
    }
    hasEnded.wait()
}

// Only plain C calls inside the loops: in a debug build another Swift function would sometimes be the innermost one.

@inline(never)
private func firstComputes(until end: UInt64, _ begin: () -> Void) {
    begin()
    var now = timespec()
    repeat {
        clock_gettime(CLOCK_MONOTONIC, &now)
    } while UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec) < end
}

@inline(never)
private func secondComputes(until end: UInt64) {
    var now = timespec()
    repeat {
        clock_gettime(CLOCK_MONOTONIC, &now)
    } while UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec) < end
}

@inline(never)
private func firstSleeps(_ microseconds: UInt32) {
    usleep(microseconds)
    errno = 0
}

@inline(never)
private func secondSleeps(_ microseconds: UInt32) {
    usleep(microseconds)
    errno = 0
}
