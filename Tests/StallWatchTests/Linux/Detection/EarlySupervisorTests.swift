import TestSupport
import Synchronization
import Testing

@testable import StallReports
@testable import StackCapture
@testable import StallWatch

/// Samples before the threshold, on a loop whose turns the test begins and ends.
@Suite struct EarlySupervisorTests {
    private static let threshold: UInt64 = 250_000_000
    private static let begin: UInt64 = 1_000_000_000

    /// A capturer of a thread that is blocked or running.
    private final class Capturer: StackCapturing {
        var isBlocked = false
        var address: UInt64 = 0x1000
        private(set) var stops = 0
        private(set) var reads = 0
        let methods = [StallReport.CaptureMethod.read, .ptrace]

        func capture(thread: Int32, mayStop: Bool, mayWait: Bool) throws(CaptureFailure) -> CapturedStack {
            if isBlocked {
                reads += 1
                return .stub([address, 0x2000], method: .read, state: .blocked)
            }
            guard mayStop else { throw CaptureFailure.notStopped }
            stops += 1
            return .stub([address, 0x2000], method: .ptrace, state: .running)
        }
    }

    private let world = WatchedWorld(at: Self.begin)
    private let capturer = Capturer()
    private var context: WatchdogContext
    private let source = ThreadSource()
    private let loop: LoopMonitor
    private var supervisor: LoopSupervisor

    init() {
        context = world.context(capturer)
        loop = .stub("early", threshold: Self.threshold, source)
        supervisor = LoopSupervisor(loop, context)
    }

    private mutating func capture(with capturer: any StackCapturing) {
        context = world.context(capturer)
        supervisor = LoopSupervisor(loop, context)
    }

    /// Runs a turn, polling whenever the supervisor asks for it; calls `at` before each poll with the turn's age.
    private mutating func runTurn(from begin: UInt64, for duration: UInt64, _ at: (UInt64) -> Void = { _ in }) {
        loop.recorder.beginTurn(at: begin)
        var time = begin
        while time < begin + duration {
            at(time - begin)
            advance(&time, to: supervisor.poll(at: time, in: world))
        }
        loop.recorder.endTurn(at: begin + duration)
        _ = supervisor.poll(at: begin + duration, in: world)
    }

    private var lastRecord: StallRecord? { world.records.withLock { $0.last } }

    @Test mutating func `a stall has samples of the time before its threshold`() throws {
        let capturer = capturer
        runTurn(from: Self.begin, for: 310_000_000) { capturer.address = $0 < 220_000_000 ? 0x1000 : 0x3000 }
        let record = try #require(lastRecord)
        #expect(record.state == .ended)
        #expect(record.samples.count == 2)
        #expect(record.samples.map(\.isEarly) == [true, true])
        let weights = record.samples.weights(duration: record.duration)
        #expect(weights.reduce(0, +) == 310_000_000)
        #expect((210_000_000...230_000_000).contains(weights[0]))
    }

    @Test mutating func `a healthy turn is dropped and counted if it was stopped`() {
        runTurn(from: Self.begin, for: 200_000_000)
        #expect(world.records.withLock { $0.isEmpty })
        #expect(capturer.stops > 5, "one turn, stopped several times")
        #expect(loop.earlyStops == 1)
    }

    @Test mutating func `running threads are stopped in one turn until there is another credit`() {
        for turn in 0..<200 as Range<UInt64> { runTurn(from: Self.begin + turn * 40_000_000, for: 35_000_000) }
        #expect(loop.earlyStops == 1)
    }

    @Test mutating func blockedThreadsAreReadWithoutCredits() {
        capturer.isBlocked = true
        for turn in 0..<10 as Range<UInt64> { runTurn(from: Self.begin + turn * 200_000_000, for: 100_000_000) }
        #expect(capturer.reads >= 100)
        #expect(capturer.stops == 0)
        #expect(loop.earlyStops == 0)
    }

    @Test mutating func stallsUseNoCredit() throws {
        for turn in 0..<20 as Range<UInt64> {
            world.records.withLock { $0.removeAll() }
            runTurn(from: Self.begin + turn * 500_000_000, for: 300_000_000)
            #expect(try #require(lastRecord).samples.contains(where: \.isEarly))
        }
        #expect(loop.earlyStops == 0)
    }

    @Test mutating func samplesFromBeforeAPauseAreDropped() throws {
        loop.recorder.beginTurn(at: Self.begin)
        capturer.address = 0x1000
        for age in [0, 40, 80, 120] as [UInt64] { supervisor.poll(at: Self.begin + age * 1_000_000, in: world) }
        #expect(capturer.stops == 3)
        capturer.address = 0x3000
        let pauseEnd = Self.begin + 150_000_000
        for age in stride(from: 160, through: 410, by: 10) as StrideThrough<UInt64> {
            world.time.store(Self.begin + age * 1_000_000, ordering: .relaxed)
            _ = supervisor.poll(at: Self.begin + age * 1_000_000, countingFrom: pauseEnd, suppressed: .paused)
        }
        let record = try #require(lastRecord)
        let addresses = try record.samples.map { try $0.stack.get().frames[0].address }
        #expect(addresses == [0x3000])
    }

    @Test mutating func `after a failed stop, the turn is not stopped before its threshold`() {
        let failing = StubCapturer { .failure($0 ? .timedOut : .notStopped) }
        capture(with: failing)
        runTurn(from: Self.begin, for: 240_000_000)
        #expect(failing.stops == 1)
    }

    /// As a thread whose cgroup has used up its CPU quota: the kernel can take no sample of it for a while.
    @Test mutating func `a thread without a CPU is captured later`() throws {
        let failures = 3
        var attempts = 0
        let unsampled = StubCapturer { mayStop in
            guard mayStop else { return .failure(.notStopped) }
            attempts += 1
            return attempts > failures
                ? .success(.stub([0x1000, 0x2000], method: .ptrace, state: .running)) : .failure(.moved)
        }
        capture(with: unsampled)
        runTurn(from: Self.begin, for: 505_000_000)
        #expect(unsampled.stops > failures)
        let record = try #require(lastRecord)
        #expect(record.samples.contains { (try? $0.stack.get()) != nil })
    }

    /// The thread leaves the kernel after 200 ms, and then computes.
    @Test mutating func `a call before the threshold has the stack of its return`() throws {
        let kernel = KernelCapturer()
        capture(with: kernel)
        runTurn(from: Self.begin, for: 310_000_000) { kernel.isInKernel = $0 < 200_000_000 }
        let record = try #require(lastRecord)
        let addresses = try record.samples.map { try $0.stack.get().frames[0].address }
        #expect(addresses == [0x1000, 0x3000])
        #expect(record.samples.map(\.isEarly) == [true, true])
        #expect(kernel.requests == 1, "one stop is pending, and no other is asked for")
        let weights = record.samples.weights(duration: record.duration)
        #expect((190_000_000...220_000_000).contains(weights[0]), "\(weights)")
    }

    /// As a thread in a function that keeps its return address in a register, on aarch64.
    @Test mutating func `a stack that only a stop completes is completed at the threshold`() throws {
        let blocked = try EpollThread()
        defer { blocked.stop() }
        _ = blocked.place()
        source.thread.store(blocked.thread, ordering: .relaxed)
        let partial = StubCapturer { mayStop in
            guard !mayStop else { return .success(.stub([0x1000, 0x2000], method: .ptrace, state: .blocked)) }
            var stack = CapturedStack.stub([0x1000], method: .read, state: .blocked)
            stack.isComplete = false
            return .success(stack)
        }
        capture(with: partial)
        runTurn(from: Self.begin, for: 100_000_000)
        #expect(loop.earlyStops == 1, "the only credit is used up")
        runTurn(from: Self.begin + 200_000_000, for: 310_000_000)
        let record = try #require(lastRecord)
        let stacks = try record.samples.map { try $0.stack.get().frames.map(\.address) }
        #expect(stacks == [[0x1000, 0x2000]])
        #expect(record.samples.weights(duration: record.duration) == [310_000_000])
    }

    @Test mutating func aPendingStopIsDroppedWithItsHealthyTurn() {
        let kernel = KernelCapturer()
        capture(with: kernel)
        runTurn(from: Self.begin, for: 200_000_000)
        #expect(kernel.canceled == 1)
        #expect(loop.earlyStops == 1)
    }

    @Test mutating func `a pending stop is dropped with its loop`() {
        let kernel = KernelCapturer()
        capture(with: kernel)
        loop.recorder.beginTurn(at: Self.begin)
        var time = Self.begin
        while kernel.requests == 0, time < Self.begin + 200_000_000 {
            advance(&time, to: supervisor.poll(at: time, in: world))
        }
        #expect(kernel.requests == 1)
        supervisor.leave(at: time)
        #expect(kernel.canceled == 1)
    }

    /// A capturer of a thread that stays in the kernel for a time.
    private final class KernelCapturer: StackCapturing {
        var isInKernel = true
        private(set) var requests = 0
        private(set) var canceled = 0
        let methods = [StallReport.CaptureMethod.read, .ptrace]

        func capture(thread: Int32, mayStop: Bool, mayWait: Bool) throws(CaptureFailure) -> CapturedStack {
            guard mayStop, mayWait else { throw CaptureFailure.notStopped }
            guard isInKernel else { return .stub([0x3000, 0x2000], method: .ptrace, state: .running) }
            requests += 1
            throw CaptureFailure.pending
        }

        func pendingCapture(of thread: Int32) -> Result<CapturedStack, CaptureFailure>? {
            guard !isInKernel else { return nil }
            var stack = CapturedStack.stub([0x1000, 0x2000], method: .ptrace, state: .running)
            stack.capturedAt = EarlySupervisorTests.begin + 200_000_000
            return .success(stack)
        }

        func cancelPendingCapture(of thread: Int32) { canceled += 1 }
    }
}
