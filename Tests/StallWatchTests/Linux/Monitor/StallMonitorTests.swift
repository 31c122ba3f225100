import CUnwindTestSupport
import Dispatch
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// `nonisolated(unsafe)`: it is set before the child begins, and after its end.
nonisolated(unsafe) private var inherited: (monitor: StallMonitor, loop: LoopWatch)?

/// The life of a monitor.
///
/// The tests watch the main run loop, which does not turn during the tests, so no stall is reported. The time limit ends
/// a test whose stream does not end.
@Suite(.timeLimit(.minutes(10))) struct StallMonitorTests {
    private func makeMonitor() throws -> StallMonitor {
        try StallMonitor(.init(outputs: []))
    }

    private func code(_ body: () throws -> Void) -> StallWatchError.Code? {
        #expect(throws: StallWatchError.self, performing: body)?.code
    }

    @Test func aLoopMayBeWatchedWhileTheMonitorRuns() throws {
        let monitor = try makeMonitor()
        try monitor.start()
        #expect(code { try monitor.start() } == .alreadyStarted)
        try monitor.watch(.runLoop(.main, label: "main"))
        #expect(code { try monitor.watch(.runLoop(.main, label: "main")) } == .alreadyWatched)
        monitor.stop()
    }

    @Test(arguments: [true, false])
    func `the reports of a stopped monitor end, and it cannot be used again`(wasStarted: Bool) async throws {
        let monitor = try makeMonitor()
        let before = monitor.makeReports()
        if wasStarted { try monitor.start() }
        monitor.stop()
        for await report in before { Issue.record("an unexpected report: \(report.summary)") }
        for await report in monitor.makeReports() { Issue.record("an unexpected report: \(report.summary)") }
        #expect(code { try monitor.watch(.runLoop(.main, label: "main")) } == .stopped)
        #expect(code { try monitor.start() } == .stopped)
        monitor.stop()
    }

    @Test func `a start removes what a killed process has left of the statistics`() throws {
        let scratch = try TemporaryDirectory()
        let left = try scratch.write(AtomicFile.temporaryPath(for: "statistics", of: .gone), "")
        let monitor = try StallMonitor(.init(outputs: [.statistics(scratch.path("statistics"))]))
        #expect(FileStatus(path: left) != nil)
        try monitor.start()
        #expect(eventually { FileStatus(path: left) == nil })
        monitor.stop()
    }

    @Test func `a monitor that does not run, or is paused, says why it proves nothing`() throws {
        let monitor = try makeMonitor()
        #expect(monitor.prove().summary == "the monitor does not run: start it, and ask before it is stopped")
        try monitor.start()
        let pause = monitor.beginPause()
        let paused = monitor.prove()
        #expect(paused.summary == "the monitor is paused: end the pause first")
        #expect(paused.trials.isEmpty && !paused.isWhole)
        pause.end()
        monitor.stop()
        #expect(monitor.prove().faults.count == 1)
        let off = try StallMonitor(
            .init(outputs: []), environment: MonitorEnvironment(["STALLWATCH": "off"], isSecure: false))
        #expect(off.prove().summary == "the monitor is off: unset STALLWATCH")
    }

    /// A thread that the child does not have may hold the locks.
    @Test func `in a child its parent's monitor takes no lock`() throws {
        let idle = IdleEngine(isOfParent: true) {}
        #expect(idle.prove().summary == "this process was forked from the monitor's: make a monitor of its own")
        #expect(idle.checkHealth().state == .stopped)
        let monitor = try makeMonitor()
        let loop = try monitor.watch(.runLoop(.main, label: "main"))
        try monitor.start()
        inherited = (monitor, loop)
        defer { inherited = nil }
        let status = try #require(monitor.engine as? LiveEngine).state.withLock { _ in
            cunwind_test_fork {
                guard let (monitor, loop) = inherited else { _exit(6) }
                let operation = monitor.engine.beginOperation("feed", .seconds(1), nil)
                monitor.engine.endOperation(operation)
                monitor.beginPause().end()
                let isIdle =
                    monitor.statistics.loops.isEmpty && loop.statistics.turns == 0
                    && monitor.checkHealth().state == .stopped && monitor.prove().faults.count == 1
                loop.stop()
                monitor.stop()
                _exit(isIdle ? 7 : 8)
            }
        }
        #expect(status == 7)
        #expect(monitor.statistics.loops.map(\.label) == ["main"])
        monitor.stop()
    }

    @Test func `a watch has no stalls of a later one with its label`() throws {
        let monitor = try makeMonitor()
        let counts = try #require(monitor.engine as? LiveEngine).reporter.counts
        let probes = [LoopProbe(label: "import"), LoopProbe(label: "import")]
        let first = try monitor.watch(.probe(probes[0]))
        counts.add(stallOf: 3_000, on: "import")
        first.stop()
        // Its last stall is counted when the watchdog follows.
        counts.add(stallOf: 500, on: "import")
        #expect(first.statistics.stalls == 2)
        let second = try monitor.watch(.probe(probes[1]))
        counts.add(stallOf: 700, on: "import")
        #expect(first.statistics.stalls == 2)
        #expect(second.statistics.stalls == 1)
        monitor.stop()
    }

    @Test func `what was counted of loops that the program has dropped is forgotten`() throws {
        let monitor = try makeMonitor()
        let counts = try #require(monitor.engine as? LiveEngine).reporter.counts
        let kept = try monitor.watch(.probe(LoopProbe(label: "kept")))
        counts.add(stallOf: 3_000, on: "kept")
        kept.stop()
        for number in 0..<1_000 {
            try monitor.watch(.probe(LoopProbe(label: "\(number)"))).stop()
            counts.add(stallOf: 700, on: "\(number)")
        }
        #expect(counts.byLoop.count < 200)
        #expect(kept.statistics.stalls == 1)
        monitor.stop()
    }

    @Test func `a proof causes a stall again until a fault repeats`() {
        func again(_ faults: [[String]]) -> [Bool] {
            [false, true].map { LiveEngine.triesAgain(after: faults, isShortOfCPU: $0) }
        }
        #expect(again([[]]) == [false, false] && again([["late"], []]) == [false, false])
        #expect(again([["late"]]) == [true, true])
        #expect(again([["late"], ["no name"]]) == [true, true])
        #expect(again([["late"], ["late"]]) == [false, true], "another thread may have had the CPU both times")
        #expect(again([["late"], ["late"], ["no name"]]) == [false, false])
    }

    @Test func `a proof says if the statistics cannot be written`() throws {
        let directory = try TemporaryDirectory()
        #expect(LiveEngine.faults(of: [FixedFile(directory.path("statistics"))]) == [])
        #expect(directory.names.isEmpty)
        let path = directory.path("none/statistics")
        let faults = LiveEngine.faults(of: [FixedFile(path)])
        #expect(faults.count == 1 && faults.allSatisfy { $0.contains("the statistics file \(path) cannot be written") })
    }

    @Test func aRunningMonitorKeepsItselfUntilItStops() throws {
        weak var remains: LiveEngine?
        func run() throws {
            let monitor = try makeMonitor()
            try monitor.watch(.runLoop(.main, label: "main"))
            try monitor.start()
            remains = monitor.engine as? LiveEngine
        }
        try run()
        let kept = try #require(remains).statistics.loops.map(\.label)
        #expect(kept == ["main"])
        remains?.stop(inTurnOf: nil)
        // A thread for which the stop has not waited long enough keeps it until it ends.
        let isReleased = eventually { remains == nil }
        #expect(isReleased)
    }

    @Test func aMonitorThatNeverRanIsReleased() async throws {
        var monitor: StallMonitor? = try makeMonitor()
        try monitor?.watch(.runLoop(.main, label: "main"))
        let reports = try #require(monitor?.makeReports())
        monitor = nil
        for await report in reports { Issue.record("an unexpected report: \(report.summary)") }
    }

    @Test func aLoopHasOneLabelAndALabelHasOneLoop() throws {
        let monitor = try makeMonitor()
        let queue = DispatchQueue(label: "storage")
        let loop = try monitor.watch(.queue(queue, label: "storage"))
        #expect(code { try monitor.watch(.queue(queue, label: "another name")) } == .alreadyWatched)
        #expect(code { try monitor.watch(.queue(DispatchQueue(label: "x"), label: "storage")) } == .alreadyWatched)
        loop.stop()
        let other = try monitor.watch(.queue(queue, label: "another name"))
        try monitor.watch(.queue(DispatchQueue(label: "x"), label: "storage"))
        // Further calls do nothing, also if another loop has the label now.
        loop.stop()
        #expect(monitor.statistics.loops.map(\.label) == ["another name", "storage"])
        other.stop()
        monitor.stop()
    }

    @Test func aLoopsThresholdIsChecked() throws {
        let monitor = try makeMonitor()
        #expect(
            code { try monitor.watch(.runLoop(.main, label: "main"), threshold: .zero) }
                == .invalidConfiguration
        )
        let loop = try monitor.watch(.runLoop(.main, label: "main"), threshold: .milliseconds(50))
        try loop.setThreshold(.milliseconds(80))
        #expect(code { try loop.setThreshold(.milliseconds(4)) } == .invalidConfiguration)
        #expect(loop.statistics.threshold == .milliseconds(80))
        monitor.stop()
    }
}

@Suite struct LoopProbeTests {
    private let probe = LoopProbe(label: "frames")

    private func turn() {
        probe.beginTurn()
        probe.endTurn()
    }

    private func recorder() -> TurnRecorder { TurnRecorder(alarm: WatchdogAlarm()) }

    @Test func `long labels are cut and stay different`() {
        let labels = ["a", "b"].map { end in
            WatchedLoop.probe(LoopProbe(label: String(repeating: "x", count: 100_000) + end)).label
        }
        #expect(labels.allSatisfy { $0.utf8.count <= StallReport.maximumNameBytes } && labels[0] != labels[1])
    }

    @Test func recordersCanFollowOneAnother() throws {
        let recorders = [recorder(), recorder(), recorder()]
        for recorder in recorders {
            turn()
            try probe.attach(recorder)
            turn()
            probe.turns.detach(recorder)
        }
        #expect(recorders.map { $0.snapshot().number } == [1, 1, 1])
    }

    @Test func aSecondRecorderIsRefused() throws {
        let (first, second) = (recorder(), recorder())
        try probe.attach(first)
        let error = #expect(throws: StallWatchError.self) { try probe.attach(second) }
        #expect(error?.code == .alreadyWatched)
        #expect(error?.description.contains("frames") == true)
        // Detaching a recorder that was never attached changes nothing.
        probe.turns.detach(second)
        turn()
        #expect(first.snapshot().number == 1)
        #expect(second.snapshot().number == 0)
    }

    /// The loop's thread may have loaded a recorder that it has not called yet, so that recorder must stay alive.
    @Test func `a detached recorder lives until a later one has a turn`() throws {
        weak var detached: TurnRecorder?
        func attachAndDetach(_ recorder: TurnRecorder) throws {
            detached = recorder
            try probe.attach(recorder)
            turn()
            probe.turns.detach(recorder)
        }
        try attachAndDetach(recorder())
        for isTold in [false, true] {
            let next = recorder()
            try probe.attach(next)
            if isTold { turn() }
            probe.turns.detach(next)
            #expect(detached != nil)
        }
        try probe.attach(recorder())
        #expect(detached == nil)
    }

    @Test func `recorders of a loop that makes no call are not kept for ever`() throws {
        struct Watched { weak var recorder: TurnRecorder? }
        var watched: [Watched] = []
        for _ in 0..<10 * ProbeTurns.maximumKept {
            let recorder = recorder()
            watched.append(Watched(recorder: recorder))
            try probe.attach(recorder)
            probe.turns.detach(recorder)
        }
        #expect(watched.count { $0.recorder != nil } <= ProbeTurns.maximumKept)
    }

    @Test func `a child watches a probe that its parent watches`() {
        let process = Atomic<UInt32>(1)
        let turns = ProbeTurns(in: { process.load(ordering: .relaxed) })
        let recorders = (parent: recorder(), child: recorder())
        var areAttached = [turns.attach(recorders.parent), turns.attach(recorders.child)]
        process.store(2, ordering: .relaxed)
        areAttached.append(turns.attach(recorders.child))
        turns.begin()
        turns.end()
        areAttached.append(turns.attach(recorders.parent))
        #expect(areAttached == [true, false, true, false])
        #expect(recorders.parent.snapshot().number == 0 && recorders.child.snapshot().number == 1)
    }

    @Test func aProbeMayMoveToAnotherMonitor() throws {
        let monitors = try (0..<3).map { _ in try StallMonitor(.init(outputs: [])) }
        let first = try monitors[0].watch(.probe(probe))
        #expect(throws: StallWatchError.self) { try monitors[1].watch(.probe(probe)) }
        first.stop()
        try monitors[1].watch(.probe(probe))
        // Stops a monitor that has not started.
        monitors[1].stop()
        try monitors[2].watch(.probe(probe))
        try monitors[2].start()
        // Stops a monitor whose watchdog has, most of the time, not run yet.
        monitors[2].stop()
        try probe.attach(recorder())
    }
}

@Suite struct ContextCalibrationTests {
    @Test func `every part is found here`() {
        let calibration = StallContext.calibration
        #expect(calibration.problem == nil)
        let layout = calibration.layout
        #expect(layout.task != nil && layout.hasTaskNames && layout.plainLocals != nil && layout.scope != nil)
        #expect(layout.robustList != nil && layout.record == nil)
    }

    /// A publisher whose facts are wrong stands for a runtime with another layout.
    private func publisher(_ change: (inout ContextPublisher) -> Void) -> ContextPublisher {
        var publisher = StallContext.publisher
        change(&publisher)
        return publisher
    }

    @Test func `with another value nothing is read`() {
        let calibration = ContextCalibration(publisher { $0.payload = ContextPayload(label: "another").bytes })
        #expect(calibration.taskProblem == "the Swift runtime's tasks do not have the expected layout")
        #expect(calibration.layout.task == nil && !calibration.layout.hasTaskNames)
        #expect(calibration.layout.plainLocals == nil && calibration.layout.scope == nil)
    }

    @Test func `with another key no task is read`() {
        let calibration = ContextCalibration(publisher { $0.key += 8 })
        #expect(calibration.layout.task == nil && calibration.layout.plainLocals == nil)
        #expect(calibration.taskProblem != nil && calibration.problem != nil)
        #expect(calibration.layout.scope != nil, "a scope needs nothing of the runtime")
    }

    @Test func `with another place no scope is read`() {
        let calibration = ContextCalibration(publisher { $0.enter = { $0() } })
        #expect(calibration.layout.scope == nil && calibration.layout.task != nil)
    }
}

/// `StallMonitor.checkHealth()`, and the health file of a monitor in this process.
@Suite(.serialized, .timeLimit(.minutes(10))) struct StallMonitorHealthTests {
    private let directory = TemporaryDirectory.ofTest()
    private let probe = LoopProbe(label: "probe")

    private func monitor(health: StallMonitor.Configuration.Health? = nil) throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(50), outputs: [])
        configuration.health = health
        return try StallMonitor(configuration)
    }

    private func fileRecord() -> HealthRecord? {
        AtomicFile.read(directory.path("health"), limit: 1 << 20).flatMap { HealthRecord(jsonData: $0) }
    }

    @Test func `the answer and the file follow the loops, and the file is left behind`() throws {
        let output = StallMonitor.Configuration.Health(
            path: directory.path("health"), interval: .milliseconds(100), notifiesSystemd: false)
        let monitor = try monitor(health: output)
        func becomes(_ state: HealthState) -> Bool {
            eventually { monitor.checkHealth().state == state && fileRecord()?.state == state }
        }
        #expect(monitor.checkHealth().state == .stopped && fileRecord() == nil)
        try monitor.watch(.probe(probe))
        try monitor.start()
        #expect(becomes(.starting))
        #expect(monitor.checkHealth().loops.map(\.state) == [.starting])
        probe.beginTurn()
        probe.endTurn()
        #expect(becomes(.ok))
        probe.beginTurn()
        #expect(becomes(.stalled))
        #expect(eventually { monitor.checkHealth().stall?.report != nil })
        #expect(monitor.checkHealth().summary.hasPrefix("probe stalled and has not come back after "))
        let stalled = try #require(fileRecord())
        #expect(eventually { (fileRecord()?.checkedAt).map { $0 > stalled.checkedAt } ?? false })
        #expect(fileRecord()?.progressedAt == stalled.progressedAt, "the file's age grows during a stall")
        probe.endTurn()
        #expect(becomes(.ok))
        #expect(eventually { monitor.checkHealth().stall?.isOngoing == false })
        monitor.stop()
        #expect(becomes(.stopped))
        #expect(monitor.checkHealth().loops.map(\.label) == ["probe"])
        #expect(directory.names == ["health"])
    }

    @Test func `a monitor without health settings answers, too`() throws {
        let monitor = try monitor()
        #expect(monitor.checkHealth().state == .stopped)
        try monitor.start()
        defer { monitor.stop() }
        #expect(eventually { monitor.checkHealth().state == .starting })
    }

    @Test func `only one monitor of a process tells supervisors`() throws {
        let output = StallMonitor.Configuration.Health(path: directory.path("health"), notifiesSystemd: false)
        let first = try monitor(health: output)
        let second = try monitor(health: output)
        try first.start()
        let error = #expect(throws: StallWatchError.self) { try second.start() }
        #expect(error?.code == .invalidConfiguration)
        #expect(first.checkHealth().state == .starting, "the first one goes on")
        first.stop()
        let third = try monitor(health: output)
        try third.start()
        third.stop()
    }
}
