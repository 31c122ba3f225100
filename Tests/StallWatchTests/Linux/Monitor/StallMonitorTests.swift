import Dispatch
import Foundation
import TestSupport
import Testing

@testable import StallReports
@testable import StallWatch

/// The life of a monitor.
///
/// The tests watch the main run loop, which does not turn during the tests, so no stall is reported. The time limit ends
/// a test whose stream does not end.
@Suite(.timeLimit(.minutes(10))) struct StallMonitorTests {
    private func makeMonitor() throws -> StallMonitor {
        try StallMonitor(.init(reports: .none))
    }

    private func code(_ body: () throws -> Void) -> StallWatchError.Code? {
        #expect(throws: StallWatchError.self, performing: body)?.code
    }

    @Test func aMonitorIsStartedAndStopped() async throws {
        let monitor = try makeMonitor()
        try monitor.watch(.mainRunLoop)
        try monitor.start()
        let reports = monitor.reports
        monitor.stop()
        #expect(await reports.reduce(into: 0) { count, _ in count += 1 } == 0)
        #expect(monitor.statistics.stalls == 0)
        #expect(monitor.statistics.failedWrites == 0)
    }

    @Test func watchingALoopTwiceIsRefused() throws {
        let monitor = try makeMonitor()
        try monitor.watch(.mainRunLoop)
        #expect(code { try monitor.watch(.mainRunLoop) } == .alreadyWatched)
        monitor.stop()
    }

    @Test func aLoopMayBeWatchedWhileTheMonitorRuns() throws {
        let monitor = try makeMonitor()
        try monitor.start()
        try monitor.watch(.mainRunLoop)
        #expect(code { try monitor.watch(.mainRunLoop) } == .alreadyWatched)
        monitor.stop()
    }

    @Test func twoMonitorsMayWatchOneLoop() throws {
        let monitors = [try makeMonitor(), try makeMonitor()]
        for monitor in monitors {
            try monitor.watch(.mainRunLoop)
            try monitor.start()
        }
        for monitor in monitors { monitor.stop() }
    }

    @Test func startingAMonitorTwiceIsRefused() throws {
        let monitor = try makeMonitor()
        try monitor.start()
        #expect(code { try monitor.start() } == .alreadyStarted)
        monitor.stop()
    }

    @Test(arguments: [true, false])
    func aStoppedMonitorCannotBeReused(wasStarted: Bool) throws {
        let monitor = try makeMonitor()
        if wasStarted { try monitor.start() }
        monitor.stop()
        #expect(code { try monitor.watch(.mainRunLoop) } == .stopped)
        #expect(code { try monitor.start() } == .stopped)
        monitor.stop()
    }

    @Test(arguments: [true, false])
    func theReportsOfAStoppedMonitorEnd(wasStarted: Bool) async throws {
        let monitor = try makeMonitor()
        let before = monitor.reports
        if wasStarted { try monitor.start() }
        monitor.stop()
        for await report in before { Issue.record("an unexpected report: \(report.summary)") }
        for await report in monitor.reports { Issue.record("an unexpected report: \(report.summary)") }
    }

    @Test func aRunningMonitorKeepsItselfUntilItStops() throws {
        weak var remains: StallMonitor?
        func run() throws {
            let monitor = try makeMonitor()
            try monitor.watch(.mainRunLoop)
            try monitor.start()
            remains = monitor
        }
        try run()
        let kept = try #require(remains).statistics.loops.map(\.label)
        #expect(kept == ["main"])
        remains?.stop()
        #expect(remains == nil)
    }

    @Test func aMonitorThatNeverRanIsReleased() async throws {
        var monitor: StallMonitor? = try makeMonitor()
        try monitor?.watch(.mainRunLoop)
        let reports = try #require(monitor?.reports)
        monitor = nil
        for await report in reports { Issue.record("an unexpected report: \(report.summary)") }
    }

    @Test func aLoopHasOneLabelAndALabelHasOneLoop() throws {
        let monitor = try makeMonitor()
        let queue = DispatchQueue(label: "storage")
        try monitor.watch(.queue(queue, label: "storage"))
        #expect(code { try monitor.watch(.queue(queue, label: "another name")) } == .alreadyWatched)
        #expect(code { try monitor.watch(.queue(DispatchQueue(label: "x"), label: "storage")) } == .alreadyWatched)
        monitor.unwatch("storage")
        try monitor.watch(.queue(queue, label: "another name"))
        monitor.unwatch("no such loop")
        monitor.stop()
    }

    @Test func aLoopsThresholdIsChecked() throws {
        let monitor = try makeMonitor()
        #expect(
            code { try monitor.watch(.runLoop(.main, label: "main", threshold: .fixed(.zero))) }
                == .invalidConfiguration
        )
        try monitor.watch(.runLoop(.main, label: "main", threshold: .milliseconds(50)))
        try monitor.setThreshold(.milliseconds(80), of: "main")
        #expect(code { try monitor.setThreshold(.milliseconds(4), of: "main") } == .invalidConfiguration)
        #expect(code { try monitor.setThreshold(.milliseconds(80), of: "other") } == .invalidConfiguration)
        monitor.stop()
    }

    @Test func aReportDirectoryThatCannotBeCreatedIsRefused() throws {
        let temporary = try TemporaryDirectory()
        let file = try temporary.write("taken", "")
        #expect(code { _ = try StallMonitor(.init(reports: .directory(file))) } == .unwritableReports)
    }
}
