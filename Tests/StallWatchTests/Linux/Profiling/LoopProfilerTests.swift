import LinuxSupport
import StallReports
import Synchronization
import Testing
import TestSupport

@testable import StackCapture
@testable import StallWatch

/// A profiler whose clock, threads and stacks are the test's.
@Suite struct LoopProfilerTests {
    /// An id that no thread has (proc(5), pid_max), so that nothing real is read.
    private static let thread = Int32.max

    private final class Source: LoopSource {
        let kind = LoopKind.probe
        func target(of recorder: TurnRecorder) -> CaptureTarget { .thread(LoopProfilerTests.thread) }
    }

    /// A capturer that answers with the same thread state and cost until the test changes them.
    private final class Capturer: StackCapturing {
        let methods = [CapturedStack.Method.read, .ptrace]
        var answer: () -> Result<CapturedStack, CaptureFailure> = { .failure(.notTried) }
        private(set) var mayStop: [Bool] = []

        func capture(thread: Int32, mayStop: Bool) throws(CaptureFailure) -> CapturedStack {
            self.mayStop.append(mayStop)
            if !mayStop { throw CaptureFailure.notStopped }
            return try answer().get()
        }
    }

    private let capturer = Capturer()
    private let loop = LoopMonitor.stub("main", threshold: 1, Source())

    private static func stack(_ address: UInt64, running: Bool, held: UInt64 = 0) -> CapturedStack {
        var stack = CapturedStack.stub(
            [address, 1], method: running ? .ptrace : .read, state: running ? .running : .blocked)
        stack.heldNanoseconds = held
        return stack
    }

    /// Takes a profile in which time passes only between the samples.
    private func run(
        _ plan: ProfilePlan?, each: (UInt64) -> Void = { _ in }
    ) throws -> LoopProfiler {
        let time = Time()
        var profiler = LoopProfiler(
            loops: [[loop]], capturer: capturer, plan: try #require(plan), inApp: .init(),
            now: { time.value.load(ordering: .relaxed) })
        let isWhole = profiler.run { deadline in
            time.value.store(deadline, ordering: .relaxed)
            each(deadline)
            return false
        }
        #expect(isWhole)
        return profiler
    }

    private final class Time: Sendable {
        let value = Atomic<UInt64>(0)
    }

    @Test func `equal samples are one run`() throws {
        capturer.answer = { .success(Self.stack(0x1000, running: false)) }
        loop.recorder.beginTurn(at: 1)
        let track = try #require(try run(ProfilePlan(seconds: 2, hertz: 50)).tracks.first)
        #expect(track.runs.count == 1 && track.samples == 100)
        #expect(track.runs.first?.state == .blocked && track.runs.first?.passes == 100)
        #expect(track.tables.stacks.count == 1)
    }

    @Test func `a wait between two turns is idle, and running is not`() throws {
        capturer.answer = { .success(Self.stack(0x1000, running: false)) }
        #expect(try run(ProfilePlan(seconds: 1, hertz: 10)).tracks.first?.runs.map(\.state) == [.idle])
        capturer.answer = { .success(Self.stack(0x1000, running: true)) }
        #expect(try run(ProfilePlan(seconds: 1, hertz: 10)).tracks.first?.runs.map(\.state) == [.running])
    }

    /// Two seconds of computing, in which a stop costs 1 ms, and two of waiting, which costs nothing.
    @Test func `the budget bounds the stops and keeps the shares`() throws {
        loop.recorder.beginTurn(at: 1)
        var isRunning = true
        let capturer = capturer
        capturer.answer = {
            .success(Self.stack(isRunning ? 0x1000 : 0x2000, running: isRunning, held: isRunning ? 1_000_000 : 0))
        }
        let profiler = try run(ProfilePlan(seconds: 20, hertz: 100)) { isRunning = $0 / 2_000_000_000 % 2 == 0 }
        let track = try #require(profiler.tracks.first)
        #expect(track.passes == 2_000 && track.skipped > 500)
        let running = track.runs.filter { $0.state == .running }
        let stops = running.reduce(0) { $0 + $1.count }
        #expect(stops <= 1 + 20_000 / 200 + 1)
        let passes = running.reduce(0) { $0 + $1.passes }
        // A stop in 200 ms: each of the nine changes is in doubt by half of that.
        #expect((910...1_090).contains(passes), "\(passes)")
        #expect(track.runs.reduce(0) { $0 + $1.passes } == 2_000)
    }

    @Test func `a thread that does not answer is not stopped for a while`() throws {
        capturer.answer = { .failure(CaptureFailure.timedOut) }
        let profiler = try run(ProfilePlan(seconds: 2, hertz: 100))
        let stops = capturer.mayStop.filter { $0 }.count
        #expect((7...8).contains(stops), "\(stops)")
        #expect(profiler.tracks.first?.samples == 200)
    }

    @Test func `what exceeds the limits is counted`() throws {
        var address: UInt64 = 0x1000
        capturer.answer = {
            address += 16
            return .success(Self.stack(address, running: false))
        }
        let profiler = try run(ProfilePlan(seconds: 300, hertz: 100))
        let track = try #require(profiler.tracks.first)
        #expect(track.samples == 30_000)
        #expect(track.tables.stacks.count == ProfileLimits.stacks)
        #expect(profiler.limits.unkept == 30_000 - ProfileLimits.stacks)
        #expect(track.runs.count <= ProfileLimits.runs)
        #expect(track.runs.reduce(0) { $0 + $1.count } == 30_000)
    }

    @Test func `a profile that is not waited for ends`() throws {
        var profiler = LoopProfiler(
            loops: [[loop]], capturer: capturer, plan: try #require(ProfilePlan(seconds: 300, hertz: 1)),
            inApp: .init(),
            now: { 0 })
        #expect(!profiler.run { _ in true })
    }
}

@Suite struct ProfileClockTests {
    private func plan(_ seconds: Int, _ hertz: Int) throws -> ProfilePlan {
        try #require(ProfilePlan(seconds: seconds, hertz: hertz))
    }

    @Test func `there is one sample in each interval, in time`() throws {
        var generator = SeededGenerator(seed: 1)
        var clock = ProfileClock(try plan(2, 50), begin: 1_000)
        var now: UInt64 = 1_000
        for index in 0..<100 {
            let time = try #require(clock.nextSample(at: now, &generator))
            #expect((time - 1_000) / 20_000_000 == UInt64(index))
            #expect(time >= now)
            now = time
        }
        #expect(clock.nextSample(at: now, &generator) == nil)
        #expect(clock.missed == 0)
        #expect(clock.end == 2_000_001_000)
    }

    @Test func `a late profiler leaves out what is over, and counts it`() throws {
        var generator = SeededGenerator(seed: 2)
        var clock = ProfileClock(try plan(1, 10), begin: 0)
        _ = clock.nextSample(at: 0, &generator)
        let time = try #require(clock.nextSample(at: 450_000_000, &generator))
        #expect((400_000_000..<500_000_000).contains(time))
        #expect(clock.missed == 3)
        #expect(clock.nextSample(at: 5_000_000_000, &generator) == nil)
        #expect(clock.missed == 8)
    }

    /// Work that repeats in step with the sampling: 7, 2 and 1 ms, twice in each interval of 20 ms.
    ///
    /// Samples at equal
    /// distances would all see the same function.
    @Test func `work in step with the sampling has its shares`() throws {
        var generator = SeededGenerator(seed: 3)
        var clock = ProfileClock(try plan(300, 50), begin: 0)
        var counts = [0, 0, 0]
        var now: UInt64 = 0
        while let time = clock.nextSample(at: now, &generator) {
            now = time
            let phase = time % 10_000_000
            counts[phase < 7_000_000 ? 0 : phase < 9_000_000 ? 1 : 2] += 1
        }
        let points = counts.map { Double($0) / 150 }
        // 15,000 samples: a standard deviation of 0.37 points at most.
        #expect(zip(points, [70.0, 20, 10]).allSatisfy { abs($0 - $1) < 1.5 }, "\(points)")
    }

    @Test func `the numbers of a plan have bounds`() {
        #expect(ProfilePlan(seconds: 0, hertz: 50) == nil && ProfilePlan(seconds: 301, hertz: 50) == nil)
        #expect(ProfilePlan(seconds: 1, hertz: 0) == nil && ProfilePlan(seconds: 1, hertz: 101) == nil)
    }
}
