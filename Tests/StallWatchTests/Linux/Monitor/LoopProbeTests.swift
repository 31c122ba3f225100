import Testing

@testable import StallReports
@testable import StallWatch

@Suite struct LoopProbeTests {
    private let probe = LoopProbe(label: "frames")

    private func turn() {
        probe.beginTurn()
        probe.endTurn()
    }

    private func recorder() -> TurnRecorder { TurnRecorder(alarm: WatchdogAlarm()) }

    @Test func turnsBeforeAttachingAreNotReported() throws {
        turn()
        let recorder = recorder()
        try probe.attach(recorder)
        #expect(recorder.snapshot().number == 0)
        turn()
        #expect(recorder.snapshot().number == 1)
    }

    @Test func recordersCanFollowOneAnother() throws {
        let recorders = [recorder(), recorder(), recorder()]
        for recorder in recorders {
            try probe.attach(recorder)
            turn()
            probe.detach(recorder)
            turn()
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
        probe.detach(second)
        turn()
        #expect(first.snapshot().number == 1)
        #expect(second.snapshot().number == 0)
    }

    /// The loop's thread may have loaded a recorder that it has not called yet, so that recorder must stay alive.
    @Test func aDetachedRecorderLivesUntilALaterOneHasATurn() throws {
        weak var detached: TurnRecorder?
        func attachAndDetach(_ recorder: TurnRecorder) throws {
            detached = recorder
            try probe.attach(recorder)
            turn()
            probe.detach(recorder)
        }
        try attachAndDetach(recorder())
        for isTold in [false, true] {
            let next = recorder()
            try probe.attach(next)
            if isTold { turn() }
            probe.detach(next)
            #expect(detached != nil)
        }
        try probe.attach(recorder())
        #expect(detached == nil)
    }

    @Test func aProbeMayMoveToAnotherMonitor() throws {
        let monitors = try (0..<3).map { _ in try StallMonitor(.init(reports: .none)) }
        try monitors[0].watch(.probe(probe))
        #expect(throws: StallWatchError.self) { try monitors[1].watch(.probe(probe)) }
        monitors[0].unwatch("frames")
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
