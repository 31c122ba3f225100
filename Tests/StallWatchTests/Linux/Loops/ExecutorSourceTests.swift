import Dispatch
import Foundation
import LinuxSupport
import StackCapture
import Synchronization
import TestSupport
import Testing

@testable import StallWatch

/// Executors whose jobs the tests run or keep.
@Suite struct ExecutorSourceTests {
    private let tasks: @Sendable () -> TaskReader? = { try? TaskReader.ofThisProcess() }

    /// Keeps jobs until the test runs them on its own thread.
    private final class Kept: Sendable {
        let jobs = Mutex<[UnownedJob]>([])

        func add(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            jobs.withLock { $0.append(job) }
        }

        func take() -> UnownedJob? { jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
    }

    private final class Serial: SerialExecutor {
        let kept = Kept()
        func enqueue(_ job: consuming ExecutorJob) { kept.add(job) }
        func run() { while let job = kept.take() { job.runSynchronously(on: asUnownedSerialExecutor()) } }
    }

    private final class Pool: TaskExecutor {
        let kept = Kept()
        func enqueue(_ job: consuming ExecutorJob) { kept.add(job) }
        func run() { while let job = kept.take() { job.runSynchronously(on: asUnownedTaskExecutor()) } }
    }

    private final class Inline: TaskExecutor {
        func enqueue(_ job: consuming ExecutorJob) { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    private final class Neither: Executor {
        func enqueue(_ job: consuming ExecutorJob) {}
    }

    private let recorder = TurnRecorder(alarm: WatchdogAlarm())

    /// Expects that one item runs on this thread, and that the next one begins a turn.
    private func expectBeats(of source: HeartbeatSource, run: () -> Void) {
        _ = source.beat(recorder, threshold: 100, at: 1_000)
        #expect(
            eventually {
                run()
                return source.isKnownToRun
            })
        #expect(source.target(of: recorder) == .unknown, "the thread that ran the heartbeat does other work now")
        _ = source.beat(recorder, threshold: 100, at: 2_000)
        #expect(recorder.snapshot().began == 2_000)
    }

    /// An actor whose jobs run on an executor of the test's.
    private actor Runner {
        private let executor: Serial
        init(_ executor: Serial) { self.executor = executor }
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        func run(_ body: @Sendable () -> Void) { body() }
    }

    /// Expects the thread on which a job waits to be the target, after this thread has run all heartbeats so far.
    ///
    /// `start` sends the executor a job with a body, and `run` runs the jobs that the executor keeps.
    private func expectThreadOfJob(
        _ source: HeartbeatSource, _ kept: Kept, run: @escaping @Sendable () -> Void,
        start: (@escaping @Sendable () -> Void) -> Void
    ) {
        _ = source.beat(recorder, threshold: 100, at: 1_000)
        #expect(
            eventually {
                run()
                return source.isKnownToRun
            })
        let threads = Collected<Int32>()
        let mayEnd = DispatchSemaphore(value: 0)
        defer { mayEnd.signal() }
        start {
            threads.add(ownThread() ?? 0)
            _ = mayEnd.wait(timeout: DispatchTime(uptimeNanoseconds: endOfPatience))
        }
        #expect(eventually { kept.jobs.withLock { !$0.isEmpty } })
        Thread.detachNewThread { run() }
        #expect(eventually { !threads.all.isEmpty })
        #expect(recorder.lastThread != threads.all.first)
        _ = source.beat(recorder, threshold: 100, at: 2_000)
        #expect(eventually { source.target(of: recorder) == threads.all.first.map(CaptureTarget.thread) })
    }

    @Test(.ownThread) func `a serial executor's target is the thread of its job`() throws {
        let executor = Serial()
        let source: HeartbeatSource = try #require(.executor(executor, tasks: tasks))
        defer { source.remove() }
        let runner = Runner(executor)
        expectThreadOfJob(source, executor.kept, run: { executor.run() }) { body in
            Task.detached { await runner.run(body) }
        }
    }

    @Test(.ownThread) func `a task executor's target is the thread of its job`() throws {
        let executor = Pool()
        let source: HeartbeatSource = try #require(.executor(executor, tasks: tasks))
        defer { source.remove() }
        expectThreadOfJob(source, executor.kept, run: { executor.run() }) { body in
            Task.detached(executorPreference: executor) { body() }
        }
    }

    /// A thousand executors that are late would each search a thousand threads at each poll.
    @Test func `threads are searched once for all executors, in 2 % of the time`() {
        let time = Atomic<UInt64>(0)
        let threads = ExecutorThreads(timeOnCPU: { time.load(ordering: .relaxed) })
        var searches: Int32 = 0
        func found(at now: UInt64) -> [UInt64: [Int32]] {
            threads.found(at: now) {
                time.wrappingAdd(1_000, ordering: .relaxed)
                searches += 1
                return [7: [searches]]
            }
        }
        for now: UInt64 in 100..<200 { #expect(found(at: now) == [7: [1]]) }
        #expect(found(at: 100 + 49_999) == [7: [1]])
        #expect(found(at: 100 + 50_000) == [7: [2]])
    }

    /// Such a target ends the stall: the executor may have ended with its thread.
    @Test func `a thread that has ended stays the target`() throws {
        let executor = Pool()
        let source: HeartbeatSource = try #require(.executor(executor, tasks: tasks))
        defer { source.remove() }
        _ = source.beat(recorder, threshold: 100, at: 1_000)
        Thread.detachNewThread {
            _ = eventually {
                executor.run()
                return source.isKnownToRun
            }
        }
        #expect(eventually { source.isKnownToRun })
        _ = source.beat(recorder, threshold: 100, at: 2_000)
        #expect(eventually { source.target(of: recorder) == recorder.lastThread.map(CaptureTarget.thread) })
    }

    @Test func `a heartbeat runs on the thread of a serial executor`() throws {
        let executor = Serial()
        let source: HeartbeatSource = try #require(.executor(executor, tasks: tasks))
        defer { source.remove() }
        #expect(source.kind == .serialExecutor)
        expectBeats(of: source, run: executor.run)
    }

    @Test func aTaskExecutorIsLateWhenNoThreadIsFree() throws {
        let executor = Pool()
        let source: HeartbeatSource = try #require(.executor(executor, tasks: tasks))
        defer { source.remove() }
        #expect(source.kind == .taskExecutor)
        expectBeats(of: source, run: executor.run)
    }

    @Test func anInlineExecutorIsLeftAlone() throws {
        let source: HeartbeatSource = try #require(.executor(Inline(), tasks: tasks))
        defer { source.remove() }
        _ = source.beat(recorder, threshold: 100, at: 1_000)
        #expect(eventually { source.isUnneeded() })
        #expect(source.beat(recorder, threshold: 100, at: 9_000) == nil)
    }

    @Test func anExecutorThatRunsNothingIsNeverLate() throws {
        let source: HeartbeatSource = try #require(.executor(Serial(), tasks: tasks))
        defer { source.remove() }
        for time in stride(from: 1_000, to: 2_000, by: 50) as StrideTo<UInt64> {
            _ = source.beat(recorder, threshold: 100, at: time)
        }
        #expect(recorder.snapshot().began == nil)
    }

    @Test func anExecutorOfNeitherKindIsRefused() {
        let source: HeartbeatSource? = .executor(Neither(), tasks: tasks)
        #expect(source == nil)
    }

    @Test func theStandardMainExecutorIsNoCustomOne() {
        #expect(MainActorExecutor.custom == nil)
    }

    private final class DispatchMainExecutor {}

    @Test func `an app's type with the name of a standard executor is not that one`() {
        #expect(!MainActorExecutor.isStandard(DispatchMainExecutor.self))
    }
}
