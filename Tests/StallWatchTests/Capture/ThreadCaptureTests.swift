import Testing

@testable import StallWatch

/// An engine that answers from a script and remembers what it was asked.
private final class ScriptedEngine: CaptureEngine {
    var looks: [ThreadLook]
    var answers: [CapturedStack.Method: [Result<CapturedStack, CaptureFailure>]]
    private(set) var asked: [CapturedStack.Method] = []

    init(looks: [ThreadLook], answers: [CapturedStack.Method: [Result<CapturedStack, CaptureFailure>]]) {
        self.looks = looks
        self.answers = answers
    }

    func probeStop() -> Bool { true }

    func look(at thread: Int32) throws(CaptureFailure) -> ThreadLook {
        guard let look = looks.first else { throw .noSuchThread }
        if looks.count > 1 { looks.removeFirst() }
        return look
    }

    func capture(_ thread: Int32, by method: CapturedStack.Method) throws(CaptureFailure) -> CapturedStack {
        asked.append(method)
        guard var rest = answers[method], let answer = rest.first else { throw .failed(errno: 38) }
        if rest.count > 1 { rest.removeFirst() }
        answers[method] = rest
        return try answer.get()
    }

    func images() -> ImageList { ImageList() }

    func leave(processor: Int32) {}
}

private func stack(_ method: CapturedStack.Method, frames: Int, isComplete: Bool = true) -> CapturedStack {
    CapturedStack(
        method: method, threadState: .running,
        frames: (0..<frames).map { CapturedStack.Frame(address: UInt64($0) + 1, isExact: false) },
        isComplete: isComplete, incompleteReason: isComplete ? nil : "cut", heldNanoseconds: 0, captureNanoseconds: 0
    )
}

@Suite struct ThreadCaptureTests {
    private let blocked = ThreadLook(state: .blocked, systemCall: 202)
    private let running = ThreadLook(state: .running)

    @Test func aWholeReadIsEnough() throws {
        let engine = ScriptedEngine(looks: [blocked], answers: [.read: [.success(stack(.read, frames: 5))]])
        let captured = try ThreadCapture(engine: engine).capture(thread: 1)
        #expect(captured.method == .read)
        #expect(captured.threadState == .blocked)
        #expect(engine.asked == [.read])
    }

    @Test func anIncompleteReadIsFollowedByAStop() throws {
        let engine = ScriptedEngine(
            looks: [blocked],
            answers: [
                .read: [.success(stack(.read, frames: 2, isComplete: false))],
                .stop: [.success(stack(.stop, frames: 9))],
            ]
        )
        let captured = try ThreadCapture(engine: engine).capture(thread: 1)
        #expect(captured.method == .stop)
        #expect(engine.asked == [.read, .stop])
    }

    @Test func theLongerOfTwoIncompleteStacksIsKept() throws {
        let engine = ScriptedEngine(
            looks: [blocked],
            answers: [
                .read: [.success(stack(.read, frames: 7, isComplete: false))],
                .stop: [.success(stack(.stop, frames: 3, isComplete: false))],
            ]
        )
        #expect(try ThreadCapture(engine: engine).capture(thread: 1).frames.count == 7)
    }

    @Test func aThreadThatWakesUpWhileItIsReadIsLookedAtAgain() throws {
        let engine = ScriptedEngine(
            looks: [blocked, running],
            answers: [.read: [.failure(.moved)], .stop: [.success(stack(.stop, frames: 4))]]
        )
        #expect(try ThreadCapture(engine: engine).capture(thread: 1).method == .stop)
        #expect(engine.asked == [.read, .stop])
    }

    @Test func aThreadThatNeverStandsStillIsGivenUp() {
        let engine = ScriptedEngine(looks: [blocked], answers: [.read: [.failure(.moved)]])
        #expect(throws: CaptureError(.moved)) { try ThreadCapture(engine: engine).capture(thread: 1) }
        #expect(engine.asked.count == ThreadCapture.maximumLooks)
    }

    @Test func aRefusalIsRememberedAndTheSignalTakesOver() throws {
        let engine = ScriptedEngine(
            looks: [running],
            answers: [.stop: [.failure(.refused(errno: 1))], .signal: [.success(stack(.signal, frames: 3))]]
        )
        let capture = ThreadCapture(engine: engine)
        #expect(try capture.capture(thread: 1).method == .signal)
        #expect(capture.methods == [.read, .signal])
        #expect(try capture.capture(thread: 1).method == .signal)
        #expect(engine.asked == [.stop, .signal, .signal])
    }

    @Test func aThreadThatIsGoneIsAnError() {
        let engine = ScriptedEngine(looks: [], answers: [:])
        #expect(throws: CaptureError(.noSuchThread)) { try ThreadCapture(engine: engine).capture(thread: 1) }
    }

    @Test func aStopThatTimesOutLeavesTheIncompleteRead() throws {
        let engine = ScriptedEngine(
            looks: [blocked],
            answers: [.read: [.success(stack(.read, frames: 2, isComplete: false))], .stop: [.failure(.timedOut)]]
        )
        #expect(try ThreadCapture(engine: engine).capture(thread: 1).method == .read)
    }
}
