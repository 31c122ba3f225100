import Glibc
import StallReports
import Testing

@testable import StackCapture

/// An engine that returns scripted results and records the methods of its captures.
private final class ScriptedEngine: CaptureEngine {
    let unwinder = Unwinder(name: "built-in")
    var statuses: [ThreadStatus]
    var answers: [StallReport.CaptureMethod: [Answer]]
    private(set) var asked: [StallReport.CaptureMethod] = []

    init(
        _ statuses: [ThreadStatus],
        _ answers: [StallReport.CaptureMethod: [Answer]] = [:]
    ) {
        self.statuses = statuses
        self.answers = answers
    }

    /// The results of the probes; the last one stays.
    var probes = [true]
    func probeStop() -> Bool { probes.count > 1 ? probes.removeFirst() : probes[0] }

    /// The number of readings that the capture has asked for.
    private(set) var readings = 0

    func read(_ probe: ThreadProbe) throws(CaptureFailure) -> ThreadReading {
        readings += 1
        guard !statuses.isEmpty else { throw .noSuchThread }
        return ThreadReading(time: 1, onCPU: 1)
    }

    func status(of probe: ThreadProbe, at reading: ThreadReading) -> ThreadStatus {
        let status = statuses[0]
        if statuses.count > 1 { statuses.removeFirst() }
        return status
    }

    func capture(
        _ probe: ThreadProbe, at reading: ThreadReading, by method: StallReport.CaptureMethod
    ) throws(CaptureFailure) -> CapturedStack { try answer(method) }

    private func answer(_ method: StallReport.CaptureMethod) throws(CaptureFailure) -> CapturedStack {
        asked.append(method)
        guard var rest = answers[method], let answer = rest.first else { throw .failed(errno: 38) }
        if rest.count > 1 { rest.removeFirst() }
        answers[method] = rest
        return try answer.get()
    }

    /// The results of stops that may stay pending, and of collecting them.
    var stops: [Answer] = []
    var collected: [Answer] = []
    private(set) var canceled: [Int32] = []

    func stopOrWait(_ probe: ThreadProbe) throws(CaptureFailure) -> CapturedStack {
        guard !stops.isEmpty else { return try answer(.ptrace) }
        return try stops.removeFirst().get()
    }

    func collectStop(of probe: ThreadProbe) throws(CaptureFailure) -> CapturedStack {
        guard !collected.isEmpty else { throw .notPending }
        return try collected.removeFirst().get()
    }

    func cancelStop(of thread: Int32) { canceled.append(thread) }

    func images() -> ImageList { ImageList() }
}

/// A thread that exists as long as the tests run: the engine does not look at it.
private let thread = getpid()

typealias Answer = Result<CapturedStack, CaptureFailure>

private func stack(
    _ method: StallReport.CaptureMethod, frames: Int, isComplete: Bool = true
) -> Answer {
    .success(
        CapturedStack(
            method: method, threadState: .running,
            frames: (0..<frames).map { CapturedFrame(address: UInt64($0) + 1, isExact: false) },
            isComplete: isComplete, incompleteReason: isComplete ? nil : "cut", heldNanoseconds: 0,
            captureNanoseconds: 0))
}

@Suite struct ThreadCaptureTests {
    private let blocked = ThreadStatus(state: .blocked, systemCall: 202)
    private let running = ThreadStatus(state: .running)

    @Test func `a capture begins with the reading that it gets`() throws {
        let engine = ScriptedEngine(
            [blocked, running], [.read: [.failure(.moved)], .ptrace: [stack(.ptrace, frames: 4)]])
        let probe = try ThreadProbe(thread: thread)
        let reading = try #require(probe.read())
        #expect(
            try ThreadCapture(engine: engine).capture(probe, at: reading, mayStop: true, mayWait: false).method
                == .ptrace)
        #expect(engine.readings == 1, "the thread moved")
        #expect(engine.asked == [.read, .ptrace])
    }

    /// A read, and what follows it: a stop if it is incomplete and may be stopped, of which the longer stack is kept.
    @Test(
        arguments: [
            (stack(.read, frames: 5), nil, true, 5, [.read]),
            (stack(.read, frames: 2, isComplete: false), stack(.ptrace, frames: 5), false, 2, [.read]),
            (stack(.read, frames: 2, isComplete: false), stack(.ptrace, frames: 9), true, 9, [.read, .ptrace]),
            (
                stack(.read, frames: 7, isComplete: false), stack(.ptrace, frames: 3, isComplete: false), true, 7,
                [.read, .ptrace]
            ),
            (stack(.read, frames: 2, isComplete: false), .failure(.timedOut), true, 2, [.read, .ptrace]),
        ] as [(Answer, Answer?, Bool, Int, [StallReport.CaptureMethod])])
    func `a blocked thread is read, and stopped if that is not enough`(
        read: Answer, stop: Answer?, mayStop: Bool, frames: Int, methods: [StallReport.CaptureMethod]
    ) throws {
        let engine = ScriptedEngine([blocked], [.read: [read], .ptrace: stop.map { [$0] } ?? []])
        let captured = try ThreadCapture(engine: engine).capture(thread: thread, mayStop: mayStop)
        #expect(captured.frames.count == frames)
        #expect(captured.threadState == .blocked)
        #expect(engine.asked == methods)
    }

    @Test func `a running thread that must not be stopped has no stack`() {
        let engine = ScriptedEngine([running], [.ptrace: [stack(.ptrace, frames: 5)]])
        #expect(throws: CaptureFailure.notStopped) {
            try ThreadCapture(engine: engine).capture(thread: thread, mayStop: false)
        }
        #expect(engine.asked.isEmpty)
    }

    @Test func aThreadThatKeepsMovingIsGivenUp() {
        let engine = ScriptedEngine([blocked], [.read: [.failure(.moved)]])
        #expect(throws: CaptureFailure.moved) { try ThreadCapture(engine: engine).capture(thread: thread) }
        #expect(engine.asked.count == ThreadCapture.maximumAttempts)
    }

    @Test func afterARefusedStopSignalsAreUsed() throws {
        let engine = ScriptedEngine(
            [running], [.ptrace: [.failure(.refused(errno: 1))], .signal: [stack(.signal, frames: 3)]])
        engine.probes = [true, false]
        let capture = ThreadCapture(engine: engine)
        #expect(try capture.capture(thread: thread).method == .signal)
        #expect(capture.methods == [.read, .signal])
        #expect(try capture.capture(thread: thread).method == .signal)
        #expect(engine.asked == [.ptrace, .signal, .signal])
    }

    /// Another engine's helper held the thread.
    @Test func `a stop that is refused once is tried again`() throws {
        let engine = ScriptedEngine(
            [running], [.ptrace: [.failure(.refused(errno: EPERM)), stack(.ptrace, frames: 3)]])
        let capture = ThreadCapture(engine: engine)
        #expect(try capture.capture(thread: thread).method == .ptrace)
        #expect(capture.methods == [.read, .ptrace])
    }

    /// A debugger, or a thread with other credentials: the other threads are stopped as before.
    @Test(arguments: [EBUSY, EPERM])
    func `a thread that cannot be stopped leaves ptrace to the others`(error: Int32) throws {
        let engine = ScriptedEngine(
            [running], [.ptrace: [.failure(.refused(errno: error))], .signal: [stack(.signal, frames: 3)]])
        let capture = ThreadCapture(engine: engine)
        #expect(try capture.capture(thread: thread).method == .signal)
        #expect(capture.methods == [.read, .ptrace])
        engine.answers[.ptrace] = [stack(.ptrace, frames: 3)]
        #expect(try capture.capture(thread: thread).method == .ptrace)
    }

    @Test func `a refused ptrace is tried once more`() throws {
        let engine = ScriptedEngine(
            [running], [.ptrace: [stack(.ptrace, frames: 4)], .signal: [stack(.signal, frames: 3)]])
        engine.probes = [false, true]
        let capture = ThreadCapture(engine: engine)
        for _ in 1...ThreadCapture.capturesBeforeProbe {
            #expect(try capture.capture(thread: thread).method == .signal)
        }
        #expect(try capture.capture(thread: thread).method == .ptrace)
    }

    /// The caller collects the stack later; one that stays would be taken for a later turn's.
    @Test func `a pending stop is an error, even if part of the stack was read`() throws {
        let engine = ScriptedEngine([blocked], [.read: [stack(.read, frames: 2, isComplete: false)]])
        engine.stops = [.failure(.pending)]
        #expect(throws: CaptureFailure.pending) {
            try ThreadCapture(engine: engine).capture(thread: thread, mayStop: true, mayWait: true)
        }
    }

    @Test func `a thread that stays in the kernel is captured later`() throws {
        let engine = ScriptedEngine([running])
        engine.stops = [.failure(.pending), .failure(.pending)]
        engine.collected = [.failure(.pending), stack(.ptrace, frames: 6)]
        let capture = ThreadCapture(engine: engine)
        #expect(throws: CaptureFailure.pending) { try capture.capture(thread: thread, mayStop: true, mayWait: true) }
        #expect(CaptureFailure.pending.isPending)
        #expect(capture.pendingCapture(of: thread) == nil)
        #expect(try capture.pendingCapture(of: thread)?.get().frames.count == 6)
        #expect(capture.pendingCapture(of: thread) == nil)
        capture.cancelPendingCapture(of: thread)
        #expect(engine.canceled == [thread])
    }

    @Test func anEndedThreadIsAnError() {
        let engine = ScriptedEngine([])
        #expect(throws: CaptureFailure.noSuchThread) { try ThreadCapture(engine: engine).capture(thread: thread) }
    }

    @Test func `an unknown system call is named as the reason`() {
        let opaque = ThreadStatus(state: .blocked, isInterruptedByStop: true, isOpaque: true)
        let engine = ScriptedEngine([opaque])
        #expect(throws: CaptureFailure.unknownSystemCall) { try ThreadCapture(engine: engine).capture(thread: thread) }
        #expect(engine.asked.isEmpty)
    }
}

@Suite struct CapturePolicyTests {
    /// A blocked thread never gets a signal.
    ///
    /// In a call that a stop interrupts it is only read; if its call is not known, it is left alone.
    @Test(
        arguments: [
            (.running, false, false, [.ptrace], [.signal]), (.blocked, false, false, [.read, .ptrace], [.read]),
            (.blocked, true, false, [.read], [.read]), (.uninterruptible, false, false, [.read], [.read]),
            (.uninterruptible, true, false, [.read], [.read]), (.blocked, false, true, [.ptrace], []),
            (.blocked, true, true, [], []), (.uninterruptible, true, true, [], []),
        ] as [(StallReport.ThreadState, Bool, Bool, [StallReport.CaptureMethod], [StallReport.CaptureMethod])])
    func `methods depend on the thread and on ptrace`(
        state: StallReport.ThreadState, isInterrupted: Bool, isOpaque: Bool, open: [StallReport.CaptureMethod],
        closed: [StallReport.CaptureMethod]
    ) {
        let status = ThreadStatus(state: state, isInterruptedByStop: isInterrupted, isOpaque: isOpaque)
        #expect(CapturePolicy(mayUsePtrace: true).methods(for: status) == open)
        #expect(CapturePolicy(mayUsePtrace: false).methods(for: status) == closed)
    }

    @Test func permittedMethodsDependOnPtrace() {
        #expect(CapturePolicy(mayUsePtrace: true).permitted == [.read, .ptrace])
        #expect(CapturePolicy(mayUsePtrace: false).permitted == [.read, .signal])
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
        _ = try capture.capture(thread: thread)
        #expect(throws: CaptureFailure.timedOut) { try capture.capture(thread: thread) }
        #expect(capture.timeTaken == 240_000_000)
        step = 3_000_000_000
        _ = try? capture.capture(thread: thread)
        #expect(capture.timeTaken == 240_000_000 + ThreadCapture.longestCapture, "the process was stopped")
    }
}
