import Testing

@testable import StallWatch

/// Runs that began before the loop was observed.
extension TurnRecorderTests {
    /// The first activity that shows a run whose beginning was not observed.
    enum FirstSign: CaseIterable { case waits, leavesWait, reachesSources }

    private func showRun(_ sign: FirstSign, at time: UInt64) {
        switch sign {
        case .waits: recorder.enterWait(at: time)
        case .leavesWait: recorder.leaveWait(at: time)
        case .reachesSources: recorder.reachSources { time }
        }
    }

    @Test(arguments: FirstSign.allCases) func aRunInsideAnUnobservedRunIsNested(sign: FirstSign) {
        showRun(sign, at: 10)
        recorder.leaveWait(at: 20)
        recorder.enter(at: 30)
        #expect(recorder.snapshot().nesting == 1)
        recorder.exit(at: 40)
        #expect(recorder.snapshot().began == 40, "the callout that made the nested run goes on")
        #expect(recorder.snapshot().nesting == 0)
        recorder.exit(at: 50)
        #expect(recorder.snapshot().began == nil)
    }

    @Test func theModeOfAnEarlierRunIsAdopted() {
        recorder.adoptMode(2)
        recorder.leaveWait(at: 10)
        #expect(recorder.snapshot().mode == 2)
        recorder.enter(at: 20)
        recorder.noteMode(1)
        #expect(recorder.snapshot().mode == 1)
        recorder.exit(at: 30)
        #expect(recorder.snapshot().mode == 2)
    }

    @Test func aModeThatTheLoopNotedIsNotReplaced() {
        recorder.enter(at: 10)
        recorder.noteMode(1)
        recorder.adoptMode(2)
        #expect(recorder.snapshot().mode == 1)
    }
}
