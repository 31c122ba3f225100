import Testing

@testable import StallWatch

@Suite struct CapturePolicyTests {
    private let open = CapturePolicy(mayStop: true)
    private let closed = CapturePolicy(mayStop: false)

    @Test func aRunningThreadIsStopped() {
        #expect(open.methods(for: ThreadLook(state: .running)) == [.stop])
    }

    @Test func aRunningThreadIsSignalledOnlyWherePtraceIsRefused() {
        #expect(closed.methods(for: ThreadLook(state: .running)) == [.signal])
    }

    @Test func aBlockedThreadIsReadFirst() {
        #expect(open.methods(for: ThreadLook(state: .blocked, systemCall: 202)) == [.read, .stop])
    }

    @Test func aThreadInACallThatAStopInterruptsIsOnlyRead() {
        let look = ThreadLook(state: .blocked, systemCall: 232, isInterruptedByStop: true)
        #expect(open.methods(for: look) == [.read])
    }

    @Test(arguments: [CapturedStack.ThreadState.blocked, .uninterruptible], [true, false])
    func aBlockedThreadIsNeverSignalled(state: CapturedStack.ThreadState, mayStop: Bool) {
        for isInterrupted in [true, false] {
            let look = ThreadLook(state: state, systemCall: 7, isInterruptedByStop: isInterrupted)
            #expect(!CapturePolicy(mayStop: mayStop).methods(for: look).contains(.signal))
        }
    }

    @Test func aThreadThatAnswersNothingIsOnlyRead() {
        #expect(open.methods(for: ThreadLook(state: .uninterruptible)) == [.read])
    }

    @Test func whatIsPermittedIsSaid() {
        #expect(open.permitted == [.read, .stop])
        #expect(closed.permitted == [.read, .signal])
    }
}
