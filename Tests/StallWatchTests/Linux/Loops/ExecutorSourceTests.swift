import LinuxSupport
import Synchronization
import TestSupport
import Testing

@testable import StallWatch

/// Executors whose jobs the tests run or keep.
@Suite struct ExecutorSourceTests {
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
        #expect(source.target(of: recorder) == recorder.lastThread.map(CaptureTarget.thread))
        _ = source.beat(recorder, threshold: 100, at: 2_000)
        #expect(recorder.snapshot().began == 2_000)
    }

    @Test func `a heartbeat runs on the thread of a serial executor`() throws {
        let executor = Serial()
        let source: HeartbeatSource = try #require(.executor(executor))
        defer { source.remove() }
        #expect(source.kind == .serialExecutor)
        expectBeats(of: source, run: executor.run)
    }

    @Test func aTaskExecutorIsLateWhenNoThreadIsFree() throws {
        let executor = Pool()
        let source: HeartbeatSource = try #require(.executor(executor))
        defer { source.remove() }
        #expect(source.kind == .taskExecutor)
        expectBeats(of: source, run: executor.run)
    }

    @Test func anInlineExecutorIsLeftAlone() throws {
        let source: HeartbeatSource = try #require(.executor(Inline()))
        defer { source.remove() }
        _ = source.beat(recorder, threshold: 100, at: 1_000)
        #expect(eventually { source.isUnneeded() })
        #expect(source.beat(recorder, threshold: 100, at: 9_000) == nil)
    }

    @Test func anExecutorThatRunsNothingIsNeverLate() throws {
        let source: HeartbeatSource = try #require(.executor(Serial()))
        defer { source.remove() }
        for time in stride(from: 1_000, to: 2_000, by: 50) as StrideTo<UInt64> {
            _ = source.beat(recorder, threshold: 100, at: time)
        }
        #expect(recorder.snapshot().began == nil)
    }

    @Test func anExecutorOfNeitherKindIsRefused() {
        let source: HeartbeatSource? = .executor(Neither())
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
