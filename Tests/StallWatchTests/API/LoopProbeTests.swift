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

    @Test func turnsOfAProbeThatNobodyWatchesAreNotToldLater() throws {
        turn()
        let recorder = recorder()
        try probe.attach(recorder)
        #expect(recorder.snapshot().number == 0)
        turn()
        #expect(recorder.snapshot().number == 1)
    }

    @Test func oneWatchesAfterTheOther() throws {
        let recorders = [recorder(), recorder(), recorder()]
        for recorder in recorders {
            try probe.attach(recorder)
            turn()
            probe.detach(recorder)
            turn()
        }
        #expect(recorders.map { $0.snapshot().number } == [1, 1, 1])
    }

    @Test func oneWatchesAtATime() throws {
        let (first, second) = (recorder(), recorder())
        try probe.attach(first)
        let error = #expect(throws: StallWatchError.self) { try probe.attach(second) }
        #expect(error?.code == .alreadyWatched)
        #expect(error?.description.contains("frames") == true)
        // One that has never watched takes nothing away.
        probe.detach(second)
        turn()
        #expect(first.snapshot().number == 1)
        #expect(second.snapshot().number == 0)
    }

    /// A loop that is between finding one and telling it must find it alive.
    @Test func oneThatIsDetachedLivesUntilALaterOneIsTold() throws {
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

    @Test func theNextMonitorMayWatchIt() throws {
        let monitors = try (0..<3).map { _ in try StallMonitor(.init(reports: .none)) }
        try monitors[0].watch(.probe(probe))
        #expect(throws: StallWatchError.self) { try monitors[1].watch(.probe(probe)) }
        monitors[0].unwatch("frames")
        try monitors[1].watch(.probe(probe))
        // Before it is started.
        monitors[1].stop()
        try monitors[2].watch(.probe(probe))
        try monitors[2].start()
        // Before its watchdog has run, most of the time.
        monitors[2].stop()
        try probe.attach(recorder())
    }
}
