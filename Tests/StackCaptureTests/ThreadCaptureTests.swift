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
    var stopRefusal: Int32?

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

private typealias Answer = Result<CapturedStack, CaptureFailure>

private func part(_ method: StallReport.CaptureMethod, frames: Int) -> Answer {
    stack(method, frames: frames, isComplete: false)
}

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
    private static let blocked = ThreadStatus(state: .blocked, systemCall: 202)
    private static let running = ThreadStatus(state: .running)
    private static let opaque = ThreadStatus(state: .blocked, isInterruptedByStop: true, isOpaque: true)

    /// A capture of a thread, of which the engine says the statuses one after another.
    private struct Case: CustomTestStringConvertible {
        var testDescription: String
        var statuses: [ThreadStatus] = []
        var answers: [StallReport.CaptureMethod: [Result<CapturedStack, CaptureFailure>]] = [:]
        var mayStop = true
        var failure: CaptureFailure?
        var stack: (StallReport.CaptureMethod, Int)?
        var asked: [StallReport.CaptureMethod] = []
    }

    private static let cases = [
        Case(
            testDescription: "a complete read is enough", statuses: [blocked],
            answers: [.read: [stack(.read, frames: 5)]],
            stack: (.read, 5), asked: [.read]),
        Case(
            testDescription: "a running thread that must not be stopped has no stack", statuses: [running],
            answers: [.ptrace: [stack(.ptrace, frames: 5)]], mayStop: false, failure: .notStopped),
        Case(
            testDescription: "a part is enough of a thread that must not be stopped", statuses: [blocked],
            answers: [.read: [part(.read, frames: 2)], .ptrace: [stack(.ptrace, frames: 5)]], mayStop: false,
            stack: (.read, 2), asked: [.read]),
        Case(
            testDescription: "a part is followed by a stop", statuses: [blocked],
            answers: [.read: [part(.read, frames: 2)], .ptrace: [stack(.ptrace, frames: 9)]],
            stack: (.ptrace, 9), asked: [.read, .ptrace]),
        Case(
            testDescription: "the longer of two parts is kept", statuses: [blocked],
            answers: [.read: [part(.read, frames: 7)], .ptrace: [part(.ptrace, frames: 3)]],
            stack: (.read, 7), asked: [.read, .ptrace]),
        Case(
            testDescription: "a part is kept if the stop takes too long", statuses: [blocked],
            answers: [.read: [part(.read, frames: 2)], .ptrace: [.failure(.timedOut)]],
            stack: (.read, 2), asked: [.read, .ptrace]),
        Case(
            testDescription: "a thread that wakes during the read is tried again", statuses: [blocked, running],
            answers: [.read: [.failure(.moved)], .ptrace: [stack(.ptrace, frames: 4)]],
            stack: (.ptrace, 4), asked: [.read, .ptrace]),
        Case(
            testDescription: "a thread that keeps moving is given up", statuses: [blocked],
            answers: [.read: [.failure(.moved)]], failure: .moved,
            asked: Array(repeating: .read, count: ThreadCapture.maximumAttempts)),
        Case(testDescription: "a thread that has ended is an error", failure: .noSuchThread),
        Case(
            testDescription: "an unknown system call is the reason", statuses: [opaque], failure: .unknownSystemCall),
    ]

    @Test(arguments: cases) private func `a capture tries methods until a stack is complete`(_ test: Case) {
        let engine = ScriptedEngine(test.statuses, test.answers)
        let result = Result { () throws(CaptureFailure) in
            try ThreadCapture(engine: engine).capture(thread: thread, mayStop: test.mayStop)
        }
        switch result {
        case .success(let stack):
            #expect(stack.method == test.stack?.0 && stack.frames.count == test.stack?.1)
            #expect(stack.threadState == (stack.method == .read ? .blocked : test.statuses.last?.state))
        case .failure(let failure): #expect(failure == test.failure)
        }
        #expect(engine.asked == test.asked)
    }

    @Test func `a capture begins with the reading that it gets`() throws {
        let engine = ScriptedEngine(
            [Self.blocked, Self.running], [.read: [.failure(.moved)], .ptrace: [stack(.ptrace, frames: 4)]])
        let probe = try ThreadProbe(thread: thread)
        let reading = try #require(probe.read())
        #expect(
            try ThreadCapture(engine: engine).capture(probe, at: reading, mayStop: true, mayWait: false).method
                == .ptrace)
        #expect(engine.readings == 1, "the thread moved")
        #expect(engine.asked == [.read, .ptrace])
    }

    @Test func afterARefusedStopSignalsAreUsed() throws {
        let engine = ScriptedEngine(
            [Self.running], [.ptrace: [.failure(.refused(errno: 1))], .signal: [stack(.signal, frames: 3)]])
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
            [Self.running], [.ptrace: [.failure(.refused(errno: EPERM)), stack(.ptrace, frames: 3)]])
        let capture = ThreadCapture(engine: engine)
        #expect(try capture.capture(thread: thread).method == .ptrace)
        #expect(capture.methods == [.read, .ptrace])
    }

    /// A debugger, or a thread with other credentials: the other threads are stopped as before.
    @Test(arguments: [EBUSY, EPERM])
    func `a thread that cannot be stopped leaves ptrace to the others`(error: Int32) throws {
        let engine = ScriptedEngine(
            [Self.running], [.ptrace: [.failure(.refused(errno: error))], .signal: [stack(.signal, frames: 3)]])
        let capture = ThreadCapture(engine: engine)
        #expect(try capture.capture(thread: thread).method == .signal)
        #expect(capture.methods == [.read, .ptrace])
        engine.answers[.ptrace] = [stack(.ptrace, frames: 3)]
        #expect(try capture.capture(thread: thread).method == .ptrace)
    }

    @Test func `a refused ptrace is tried once more`() throws {
        let engine = ScriptedEngine(
            [Self.running], [.ptrace: [stack(.ptrace, frames: 4)], .signal: [stack(.signal, frames: 3)]])
        engine.probes = [false, true]
        let capture = ThreadCapture(engine: engine)
        for _ in 1...ThreadCapture.capturesBeforeProbe {
            #expect(try capture.capture(thread: thread).method == .signal)
        }
        #expect(try capture.capture(thread: thread).method == .ptrace)
    }

    @Test func `a refused ptrace is reported with its reason`() {
        let engine = ScriptedEngine([Self.running])
        engine.probes = [false]
        engine.stopRefusal = ENOSYS
        #expect(ThreadCapture(engine: engine).outcomes[.ptrace] == .missing(String(cString: strerror(ENOSYS))))
    }

    /// The caller collects the stack later; one that stays would be taken for a later turn's.
    @Test func `a pending stop is an error, even if part of the stack was read`() throws {
        let engine = ScriptedEngine([Self.blocked], [.read: [part(.read, frames: 2)]])
        engine.stops = [.failure(.pending)]
        #expect(throws: CaptureFailure.pending) {
            try ThreadCapture(engine: engine).capture(thread: thread, mayStop: true, mayWait: true)
        }
    }

    @Test func `a thread that stays in the kernel is captured later`() throws {
        let engine = ScriptedEngine([Self.running])
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
}

@Suite struct CapturePolicyTests {
    @Test(
        arguments: [
            (ThreadStatus(state: .running), [.ptrace], [.signal]),
            (ThreadStatus(state: .blocked, systemCall: 202), [.read, .ptrace], [.read]),
            (ThreadStatus(state: .blocked, systemCall: 232, isInterruptedByStop: true), [.read], [.read]),
            (ThreadStatus(state: .uninterruptible), [.read], [.read]),
            // Of a call that is not shown, it may be known that it restarts.
            (ThreadStatus(state: .blocked, isInterruptedByStop: false, isOpaque: true), [.ptrace], []),
            (ThreadStatus(state: .blocked, isInterruptedByStop: true, isOpaque: true), [], []),
            (ThreadStatus(state: .uninterruptible, isInterruptedByStop: true, isOpaque: true), [], []),
        ] as [(ThreadStatus, [StallReport.CaptureMethod], [StallReport.CaptureMethod])])
    func `the status decides the methods`(
        status: ThreadStatus, open: [StallReport.CaptureMethod], closed: [StallReport.CaptureMethod]
    ) {
        let policies = [true, false].map { CapturePolicy(mayUsePtrace: $0) }
        #expect(policies.map { $0.methods(for: status) } == [open, closed])
        #expect(policies.map(\.permitted) == [[.read, .ptrace], [.read, .signal]])
    }

    @Test(arguments: [StallReport.ThreadState.blocked, .uninterruptible], [true, false])
    func aBlockedThreadIsNeverSignalled(state: StallReport.ThreadState, mayUsePtrace: Bool) {
        for isInterrupted in [true, false] {
            let status = ThreadStatus(state: state, systemCall: 7, isInterruptedByStop: isInterrupted)
            #expect(!CapturePolicy(mayUsePtrace: mayUsePtrace).methods(for: status).contains(.signal))
        }
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
