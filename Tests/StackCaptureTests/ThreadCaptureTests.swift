import Glibc
import Testing

@testable import StackCapture

/// An engine that returns scripted results and records the methods of its captures.
private final class ScriptedEngine: CaptureEngine {
    let unwinder = Unwinder(name: "built-in")
    var statuses: [ThreadStatus]
    var answers: [CapturedStack.Method: [Result<CapturedStack, CaptureFailure>]]
    private(set) var asked: [CapturedStack.Method] = []

    init(_ statuses: [ThreadStatus], _ answers: [CapturedStack.Method: [Result<CapturedStack, CaptureFailure>]] = [:]) {
        self.statuses = statuses
        self.answers = answers
    }

    /// The results of the probes; the last one stays.
    var probes = [true]
    func probeStop() -> Bool { probes.count > 1 ? probes.removeFirst() : probes[0] }

    func status(of thread: Int32) throws(CaptureFailure) -> ThreadStatus {
        guard let status = statuses.first else { throw .noSuchThread }
        if statuses.count > 1 { statuses.removeFirst() }
        return status
    }

    func capture(_ thread: Int32, by method: CapturedStack.Method) throws(CaptureFailure) -> CapturedStack {
        asked.append(method)
        guard var rest = answers[method], let answer = rest.first else { throw .failed(errno: 38) }
        if rest.count > 1 { rest.removeFirst() }
        answers[method] = rest
        return try answer.get()
    }

    /// The results of stops that may stay pending, and of collecting them.
    var stops: [Result<CapturedStack, CaptureFailure>] = []
    var collected: [Result<CapturedStack, CaptureFailure>] = []
    private(set) var canceled: [Int32] = []
    private(set) var closed: [Int32] = []

    func stopOrWait(_ thread: Int32) throws(CaptureFailure) -> CapturedStack {
        guard !stops.isEmpty else { return try capture(thread, by: .ptrace) }
        return try stops.removeFirst().get()
    }

    func collectStop(of thread: Int32) throws(CaptureFailure) -> CapturedStack {
        guard !collected.isEmpty else { throw .notPending }
        return try collected.removeFirst().get()
    }

    func cancelStop(of thread: Int32) { canceled.append(thread) }

    func closeFiles(of thread: Int32) { closed.append(thread) }

    func images() -> ImageList { ImageList() }
}

private func stack(
    _ method: CapturedStack.Method, frames: Int, isComplete: Bool = true
) -> Result<CapturedStack, CaptureFailure> {
    .success(
        CapturedStack(
            method: method, threadState: .running,
            frames: (0..<frames).map { CapturedStack.Frame(address: UInt64($0) + 1, isExact: false) },
            isComplete: isComplete, incompleteReason: isComplete ? nil : "cut", heldNanoseconds: 0,
            captureNanoseconds: 0))
}

@Suite struct ThreadCaptureTests {
    private let blocked = ThreadStatus(state: .blocked, systemCall: 202)
    private let running = ThreadStatus(state: .running)

    @Test func `the files of a loop's thread stay open, those of others do not`() throws {
        let engine = ScriptedEngine([blocked], [.read: [stack(.read, frames: 5)]])
        let capture = ThreadCapture(engine: engine)
        capture.keepFiles(of: 1)
        capture.keepFiles(of: 2)
        for thread in Int32(1)...4 { _ = try capture.capture(thread: thread) }
        _ = try capture.captureOrWait(thread: 5)
        _ = try capture.capture(thread: 5)
        #expect(engine.closed == [3, 4])
    }

    @Test func aCompleteReadIsEnough() throws {
        let engine = ScriptedEngine([blocked], [.read: [stack(.read, frames: 5)]])
        let captured = try ThreadCapture(engine: engine).capture(thread: 1)
        #expect(captured.method == .read)
        #expect(captured.threadState == .blocked)
        #expect(engine.asked == [.read])
    }

    @Test func `a running thread that must not be stopped has no stack`() {
        let engine = ScriptedEngine([running], [.ptrace: [stack(.ptrace, frames: 5)]])
        #expect(throws: CaptureFailure.notStopped) {
            try ThreadCapture(engine: engine).capture(thread: 1, mayStop: false)
        }
        #expect(engine.asked.isEmpty)
    }

    @Test func `an incomplete read is enough for a thread that must not be stopped`() throws {
        let engine = ScriptedEngine(
            [blocked], [.read: [stack(.read, frames: 2, isComplete: false)], .ptrace: [stack(.ptrace, frames: 5)]])
        #expect(try ThreadCapture(engine: engine).capture(thread: 1, mayStop: false).frames.count == 2)
        #expect(engine.asked == [.read])
    }

    @Test func anIncompleteReadIsFollowedByAStop() throws {
        let engine = ScriptedEngine(
            [blocked], [.read: [stack(.read, frames: 2, isComplete: false)], .ptrace: [stack(.ptrace, frames: 9)]])
        let captured = try ThreadCapture(engine: engine).capture(thread: 1)
        #expect(captured.method == .ptrace)
        #expect(engine.asked == [.read, .ptrace])
    }

    @Test func theLongerOfTwoIncompleteStacksIsKept() throws {
        let engine = ScriptedEngine(
            [blocked],
            [
                .read: [stack(.read, frames: 7, isComplete: false)],
                .ptrace: [stack(.ptrace, frames: 3, isComplete: false)],
            ])
        #expect(try ThreadCapture(engine: engine).capture(thread: 1).frames.count == 7)
    }

    @Test func `a thread that wakes during the read is tried again`() throws {
        let engine = ScriptedEngine(
            [blocked, running], [.read: [.failure(.moved)], .ptrace: [stack(.ptrace, frames: 4)]])
        #expect(try ThreadCapture(engine: engine).capture(thread: 1).method == .ptrace)
        #expect(engine.asked == [.read, .ptrace])
    }

    @Test func aThreadThatKeepsMovingIsGivenUp() {
        let engine = ScriptedEngine([blocked], [.read: [.failure(.moved)]])
        #expect(throws: CaptureFailure.moved) { try ThreadCapture(engine: engine).capture(thread: 1) }
        #expect(engine.asked.count == ThreadCapture.maximumAttempts)
    }

    @Test func afterARefusedStopSignalsAreUsed() throws {
        let engine = ScriptedEngine(
            [running], [.ptrace: [.failure(.refused(errno: 1))], .signal: [stack(.signal, frames: 3)]])
        engine.probes = [true, false]
        let capture = ThreadCapture(engine: engine)
        #expect(try capture.capture(thread: 1).method == .signal)
        #expect(capture.methods == [.read, .signal])
        #expect(try capture.capture(thread: 1).method == .signal)
        #expect(engine.asked == [.ptrace, .signal, .signal])
    }

    /// Another engine's helper held the thread.
    @Test func `a stop that is refused once is tried again`() throws {
        let engine = ScriptedEngine(
            [running], [.ptrace: [.failure(.refused(errno: EPERM)), stack(.ptrace, frames: 3)]])
        let capture = ThreadCapture(engine: engine)
        #expect(try capture.capture(thread: 1).method == .ptrace)
        #expect(capture.methods == [.read, .ptrace])
    }

    /// A debugger, or a thread with other credentials: the other threads are stopped as before.
    @Test(arguments: [EBUSY, EPERM])
    func `a thread that cannot be stopped leaves ptrace to the others`(error: Int32) throws {
        let engine = ScriptedEngine(
            [running], [.ptrace: [.failure(.refused(errno: error))], .signal: [stack(.signal, frames: 3)]])
        let capture = ThreadCapture(engine: engine)
        #expect(try capture.capture(thread: 1).method == .signal)
        #expect(capture.methods == [.read, .ptrace])
        engine.answers[.ptrace] = [stack(.ptrace, frames: 3)]
        #expect(try capture.capture(thread: 1).method == .ptrace)
    }

    @Test func `a refused ptrace is tried once more`() throws {
        let engine = ScriptedEngine(
            [running], [.ptrace: [stack(.ptrace, frames: 4)], .signal: [stack(.signal, frames: 3)]])
        engine.probes = [false, true]
        let capture = ThreadCapture(engine: engine)
        for _ in 1...ThreadCapture.capturesBeforeProbe {
            #expect(try capture.capture(thread: 1).method == .signal)
        }
        #expect(try capture.capture(thread: 1).method == .ptrace)
    }

    /// The caller collects the stack later; one that stays would be taken for a later turn's.
    @Test func `a pending stop is an error, even if part of the stack was read`() throws {
        let engine = ScriptedEngine([blocked], [.read: [stack(.read, frames: 2, isComplete: false)]])
        engine.stops = [.failure(.pending)]
        #expect(throws: CaptureFailure.pending) { try ThreadCapture(engine: engine).captureOrWait(thread: 1) }
    }

    @Test func `a thread that stays in the kernel is captured later`() throws {
        let engine = ScriptedEngine([running])
        engine.stops = [.failure(.pending), .failure(.pending)]
        engine.collected = [.failure(.pending), stack(.ptrace, frames: 6)]
        let capture = ThreadCapture(engine: engine)
        #expect(throws: CaptureFailure.pending) { try capture.captureOrWait(thread: 1) }
        #expect(CaptureFailure.pending.isPending)
        #expect(capture.pendingCapture(of: 1) == nil)
        #expect(try capture.pendingCapture(of: 1)?.get().frames.count == 6)
        #expect(capture.pendingCapture(of: 1) == nil)
        capture.cancelPendingCapture(of: 1)
        #expect(engine.canceled == [1])
    }

    @Test func anEndedThreadIsAnError() {
        let engine = ScriptedEngine([])
        #expect(throws: CaptureFailure.noSuchThread) { try ThreadCapture(engine: engine).capture(thread: 1) }
    }

    @Test func `an unknown system call is named as the reason`() {
        let opaque = ThreadStatus(state: .blocked, isInterruptedByStop: true, isOpaque: true)
        let engine = ScriptedEngine([opaque])
        #expect(throws: CaptureFailure.unknownSystemCall) { try ThreadCapture(engine: engine).capture(thread: 1) }
        #expect(engine.asked.isEmpty)
    }

    @Test func afterAStopTimeoutTheIncompleteReadIsKept() throws {
        let engine = ScriptedEngine(
            [blocked], [.read: [stack(.read, frames: 2, isComplete: false)], .ptrace: [.failure(.timedOut)]])
        #expect(try ThreadCapture(engine: engine).capture(thread: 1).method == .read)
    }
}

@Suite struct CapturePolicyTests {
    private let open = CapturePolicy(mayUsePtrace: true)
    private let closed = CapturePolicy(mayUsePtrace: false)

    @Test func aRunningThreadIsStopped() {
        #expect(open.methods(for: ThreadStatus(state: .running)) == [.ptrace])
    }

    @Test func `a running thread is signaled if ptrace is refused`() {
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

    @Test func permittedMethodsDependOnPtrace() {
        #expect(open.permitted == [.read, .ptrace])
        #expect(closed.permitted == [.read, .signal])
    }

    @Test func `the times of failed and successful captures add up`() throws {
        let engine = ScriptedEngine(
            [ThreadStatus(state: .running)], [.ptrace: [stack(.ptrace, frames: 3), .failure(.timedOut)]])
        // Each capture reads the clock at its beginning and at its end.
        var time: UInt64 = 0
        var step: UInt64 = 120_000_000
        let capture = ThreadCapture(
            engine: engine,
            now: {
                time += step
                return time
            })
        _ = try capture.capture(thread: 1)
        #expect(throws: CaptureFailure.timedOut) { try capture.capture(thread: 1) }
        #expect(capture.timeTaken == 240_000_000)
        step = 3_000_000_000
        _ = try? capture.capture(thread: 1)
        #expect(capture.timeTaken == 240_000_000 + ThreadCapture.longestCapture, "the process was stopped")
    }
}
