import Testing

@testable import StackCapture

@Suite struct CapturePolicyTests {
    private let open = CapturePolicy(mayUsePtrace: true)
    private let closed = CapturePolicy(mayUsePtrace: false)

    @Test func aRunningThreadIsStopped() {
        #expect(open.methods(for: ThreadStatus(state: .running)) == [.ptrace])
    }

    @Test func aRunningThreadIsSignaledIfPtraceIsRefused() {
        #expect(closed.methods(for: ThreadStatus(state: .running)) == [.signal])
    }

    @Test func aBlockedThreadIsReadFirst() {
        #expect(open.methods(for: ThreadStatus(state: .blocked, systemCall: 202)) == [.read, .ptrace])
    }

    @Test func aThreadInAnInterruptibleCallIsOnlyRead() {
        let status = ThreadStatus(state: .blocked, systemCall: 232, isInterruptedByStop: true)
        #expect(open.methods(for: status) == [.read])
    }

    @Test(arguments: [CapturedStack.ThreadState.blocked, .uninterruptible], [true, false])
    func aBlockedThreadIsNeverSignalled(state: CapturedStack.ThreadState, mayUsePtrace: Bool) {
        for isInterrupted in [true, false] {
            let status = ThreadStatus(state: state, systemCall: 7, isInterruptedByStop: isInterrupted)
            #expect(!CapturePolicy(mayUsePtrace: mayUsePtrace).methods(for: status).contains(.signal))
        }
    }

    @Test func `an opaque thread is stopped if its call restarts`() {
        let status = ThreadStatus(state: .blocked, isInterruptedByStop: false, isOpaque: true)
        #expect(open.methods(for: status) == [.ptrace])
        #expect(closed.methods(for: status).isEmpty)
    }

    @Test(arguments: [CapturedStack.ThreadState.blocked, .uninterruptible])
    func `an opaque thread in an unknown call is left alone`(state: CapturedStack.ThreadState) {
        let status = ThreadStatus(state: state, isInterruptedByStop: true, isOpaque: true)
        #expect(open.methods(for: status).isEmpty)
        #expect(closed.methods(for: status).isEmpty)
    }

    @Test func anUninterruptibleThreadIsOnlyRead() {
        #expect(open.methods(for: ThreadStatus(state: .uninterruptible)) == [.read])
    }

    @Test func `a thread that was in the kernel is sampled first`() {
        let running = ThreadStatus(state: .running)
        #expect(open.methods(for: running, mayBeInKernel: true) == [.perf, .ptrace])
        #expect(closed.methods(for: running, mayBeInKernel: true) == [.perf, .signal])
        let refused = CapturePolicy(mayUsePtrace: true, mayUsePerf: false)
        #expect(refused.methods(for: running, mayBeInKernel: true) == [.ptrace])
        #expect(
            open.methods(for: ThreadStatus(state: .blocked, systemCall: 0), mayBeInKernel: true) == [.read, .ptrace])
    }

    @Test func permittedMethodsDependOnPtrace() {
        #expect(open.permitted == [.read, .ptrace])
        #expect(closed.permitted == [.read, .signal])
    }
}
