import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

/// Heartbeats of a loop whose items the test runs; times are small numbers, because the test passes them; only the
/// items that run read the clock.
@Suite struct HeartbeatSourceTests {
    private final class Loop: Sendable {
        let items = Mutex<[@Sendable () -> Void]>([])

        var pending: Int { items.withLock { $0.count } }

        func add(_ item: @escaping @Sendable () -> Void) { items.withLock { $0.append(item) } }

        func runAll() {
            for item in items.withLock({ items in
                defer { items.removeAll() }
                return items
            }) { item() }
        }
    }

    private let loop = Loop()
    private let recorder = TurnRecorder(alarm: WatchdogAlarm())

    private func source(
        _ kind: LoopKind = .dispatchQueue, owner: CaptureTarget? = nil
    ) -> HeartbeatSource {
        HeartbeatSource(kind: kind, owner: { owner }) { [loop] item in loop.add(item) }
    }

    @Test func nothingCountsBeforeTheFirstItemHasRun() {
        let source = source()
        #expect(source.beat(recorder, threshold: 100, at: 1000) == 1050)
        #expect(loop.pending == 1)
        #expect(recorder.snapshot().began == nil)
        #expect(source.beat(recorder, threshold: 100, at: 1050) == 1100)
        #expect(loop.pending == 1)
        loop.runAll()
        #expect(source.beat(recorder, threshold: 100, at: 1100) == 1150)
        #expect(recorder.snapshot().began == 1100)
    }

    @Test func `a watch that begins sends the first item before the app can send work`() {
        let watched = LoopMonitor(label: "queue", threshold: 100, recorder: recorder, source: source())
        watched.begin(at: 1000)
        #expect(loop.pending == 1)
        loop.add { #expect(self.recorder.lastThread != nil, "the loop is known to run before its first work") }
        loop.runAll()
        #expect(!watched.poll(at: 1050).isStarting && recorder.snapshot().began == 1050)
    }

    @Test func `a loop with a new threshold is checked at once`() {
        let watched = LoopMonitor(label: "queue", threshold: 1_000_000, recorder: recorder, source: source())
        watched.begin(at: 5_000_000)
        loop.runAll()
        _ = watched.poll(at: 5_100_000)
        #expect(loop.pending == 0)
        watched.setThreshold(400_000)
        _ = watched.poll(at: 5_100_001)
        #expect(loop.pending == 1)
    }

    @Test func theFirstItemOfALoopThatIsServedCounts() throws {
        let source = HeartbeatSource(kind: .mainQueue, isServed: true) { [loop] item in loop.add(item) }
        let sent = monotonicNow()
        #expect(source.beat(recorder, threshold: 100, at: sent) == (sent / 50 + 1) * 50)
        #expect(recorder.snapshot().began == sent)
        #expect(try #require(source.startUncertainty(of: sent)) > 0)
        #expect(source.beat(recorder, threshold: 100, at: sent + 100) == nil)
        loop.runAll()
        #expect(recorder.snapshot().began == nil)
    }

    @Test func `the first item of a global queue counts, which may be full already`() {
        #expect(HeartbeatSource.globalQueue(.utility).isKnownToRun)
    }

    @Test func `the first item counts for a caller that knows the loop`() {
        let source = source()
        source.markServed()
        #expect(source.beat(recorder, threshold: 100, at: 1000) == 1050)
        #expect(recorder.snapshot().began == 1000)
    }

    /// The main run loop serves the main queue, but not in a run that one of the queue's blocks makes.
    @Test func `a nested run of the main run loop may not serve the main queue`() {
        let runLoop = TurnRecorder(alarm: WatchdogAlarm())
        #expect(!runLoop.servesMainQueue, "it has not run")
        runLoop.enter(at: 10)
        runLoop.setMode(TurnRecorder.defaultMode)
        #expect(runLoop.servesMainQueue)
        runLoop.enter(at: 20)
        runLoop.setMode(7)
        #expect(runLoop.servesMainQueue, "a mode of the app's is no run that waits for something")
        runLoop.exit(at: 30)
        runLoop.enter(at: 40)
        runLoop.setMode(TurnRecorder.defaultMode)
        #expect(!runLoop.servesMainQueue)
        runLoop.exit(at: 50)
        #expect(runLoop.servesMainQueue)
        runLoop.enter(at: 60)
        runLoop.setMode(TurnRecorder.defaultMode)
        runLoop.markMainQueueRun()
        #expect(runLoop.servesMainQueue, "a block of the queue has run in it")
        runLoop.enter(at: 70)
        runLoop.setMode(TurnRecorder.defaultMode)
        #expect(!runLoop.servesMainQueue, "that block has made another run")
    }

    /// An async `main` that has waited for a process has run the main run loop, and never runs it again.
    @Test func `the main run loop serves no queue that the main thread has given up`() {
        #expect(HeartbeatSource.mayRunLoopServe(.thread(getpid())))
        #expect(HeartbeatSource.mayRunLoopServe(nil), "the owner is not known")
        #expect(!HeartbeatSource.mayRunLoopServe(.unknown), "no thread runs it")
        #expect(!HeartbeatSource.mayRunLoopServe(.thread(getpid() + 1)), "a worker runs it")
    }

    /// What has observed the loop until now has seen it healthy, so the first item counts.
    @Test func `a loop that was observed in another way is known to run`() {
        let isUnneeded = Atomic(true)
        let isExcused = Atomic(false)
        let source = HeartbeatSource(
            kind: .mainQueue, unless: { isUnneeded.load(ordering: .relaxed) },
            excusedIf: { _ in isExcused.load(ordering: .relaxed) }
        ) { [loop] item in loop.add(item) }
        let seen = monotonicNow() + 1_000_000_000
        #expect(source.beat(recorder, threshold: 100, at: seen) == nil)
        #expect(loop.pending == 0)
        isUnneeded.store(false, ordering: .relaxed)
        #expect(source.beat(recorder, threshold: 100, at: seen + 1_000) != nil)
        #expect(recorder.snapshot().began == seen + 1_000)
        #expect(source.startUncertainty(of: seen + 1_000) == 1_000)
        #expect(!source.isWaitingUnobserved())
        isExcused.store(true, ordering: .relaxed)
        #expect(source.isWaitingUnobserved())
        isExcused.store(false, ordering: .relaxed)
        isUnneeded.store(true, ordering: .relaxed)
        #expect(source.isWaitingUnobserved(), "an item that is late does not count any more")
    }

    @Test func noItemIsSentWhileOneIsPending() {
        let source = source()
        _ = source.beat(recorder, threshold: 100, at: 1000)
        loop.runAll()
        _ = source.beat(recorder, threshold: 100, at: 2000)
        for time in [2050, 2100, 9000] as [UInt64] { #expect(source.beat(recorder, threshold: 100, at: time) == nil) }
        #expect(loop.pending == 1)
        #expect(recorder.snapshot().began == 2000)
    }

    /// The system may refuse the thread that sends it.
    @Test func `an item that cannot be sent is sent by a later check`() {
        let canSend = Atomic(false)
        let source = HeartbeatSource(
            kind: .eventLoop, isServed: true, onlyIf: { canSend.load(ordering: .relaxed) }
        ) { [loop] item in loop.add(item) }
        #expect(source.beat(recorder, threshold: 100, at: 1000) == 1050)
        #expect(loop.pending == 0 && recorder.snapshot().began == nil)
        canSend.store(true, ordering: .relaxed)
        #expect(source.beat(recorder, threshold: 100, at: 1050) == 1100)
        #expect(loop.pending == 1 && recorder.snapshot().began == 1050)
    }

    @Test func itemsAreSentTwicePerThreshold() {
        let source = source()
        _ = source.beat(recorder, threshold: 100, at: 1000)
        loop.runAll()
        #expect(source.beat(recorder, threshold: 100, at: 1049) == 1050)
        #expect(loop.pending == 0)
    }

    /// A lower threshold must also make items more frequent, or a short stall could fall between two of them.
    @Test func aChangedThresholdAppliesToTheNextItem() {
        let source = source()
        _ = source.beat(recorder, threshold: 10_000, at: 10_000)
        loop.runAll()
        #expect(source.beat(recorder, threshold: 100, at: 10_049) == 10_050)
        #expect(source.beat(recorder, threshold: 100, at: 10_050) == 10_100)
        #expect(loop.pending == 1)
    }

    /// A watchdog that waited for a CPU may poll after the turn is over.
    @Test func theStartUncertaintyIsTheSameAfterTheTurn() throws {
        let source = source()
        _ = source.beat(recorder, threshold: 2, at: monotonicNow())
        loop.runAll()
        let began = monotonicNow()
        _ = source.beat(recorder, threshold: 2, at: began)
        let uncertainty = try #require(source.startUncertainty(of: began))
        #expect(uncertainty > 0)
        loop.runAll()
        #expect(source.startUncertainty(of: began) == uncertainty)
    }

    @Test func `the current owner is captured and no earlier thread`() {
        recorder.rememberThread()
        #expect(source(owner: .thread(77)).target(of: recorder) == .thread(77))
        #expect(source(owner: .unknown).target(of: recorder) == .unknown)
        #expect(source(owner: nil).target(of: recorder) == recorder.lastThread.map(CaptureTarget.thread))
        #expect(source(.globalQueue).target(of: recorder) == .pool)
    }

    /// No item has confirmed the layout; a concurrent queue's never does.
    @Test func `without its layout a queue has no known thread`() {
        recorder.rememberThread()
        #expect(recorder.lastThread != nil)
        #expect(HeartbeatSource.queue(DispatchQueue(label: "new")).target(of: recorder) == .unknown)
        #expect(HeartbeatSource.mainQueue(recorder).target(of: recorder) == .unknown, "this is not the main thread")
    }

    /// A program's own executor may hold the thread that gives it a task.
    @Test func `only the first heartbeat of a replaced task pool is sent on the caller's thread`() throws {
        let (senders, own) = (Collected<Int32>(), try #require(ownThread()))
        let mayGoOn = Semaphore()
        let executor = DispatchQueue(label: "executor")
        let source = HeartbeatSource.cooperativePool { _, item in
            senders.add(ownThread() ?? 0)
            if ownThread() != own { mayGoOn.wait() }
            executor.sync(execute: item)
        }
        defer { source.remove() }
        _ = source.beat(recorder, threshold: 100, at: 1_000)
        #expect(senders.all == [own, own] && source.isKnownToRun)
        _ = source.beat(recorder, threshold: 100, at: 2_000)
        #expect(eventually { senders.all.count == 3 })
        #expect(senders.all.last != own)
        #expect(recorder.snapshot().began == 2_000, "what holds it is late")
        mayGoOn.post()
        mayGoOn.post()
        #expect(eventually { recorder.snapshot().began == nil })
    }

    @Test func `a pool has the priorities in which its heartbeats wait`() {
        let pools = TaskPools([.high, .medium])
        let source = HeartbeatSource(kind: .cooperativePool, idle: pools) { _ in }
        #expect(source.pendingPriorities == nil)
        for pool in pools.all { pool.idle.pending.wrappingAdd(1, ordering: .relaxed) }
        #expect(source.pendingPriorities == ["high", "medium"])
        pools.all[0].idle.pending.wrappingSubtract(1, ordering: .relaxed)
        #expect(source.pendingPriorities == ["medium"])
    }

    // MARK: - Idle loops

    private final class Idle: IdleCheck {
        let isIdle = Mutex(true)
        let sent = Mutex(0)

        func isIdle(thread: Int32?, lastDelay: UInt64) -> Bool { isIdle.withLock { $0 } }
        func markSent(to thread: Int32?) { sent.withLock { $0 += 1 } }
    }

    private let idle = Idle()

    private func idleSource() -> HeartbeatSource {
        HeartbeatSource(kind: .dispatchQueue, idle: idle) { [loop] item in loop.add(item) }
    }

    @Test func `an idle loop gets one item, and then none`() {
        let source = idleSource()
        #expect(source.beat(recorder, threshold: 100, at: 1_000) == 1_050)
        #expect(loop.pending == 1, "it is not known to run yet")
        #expect(!source.isKnownToRun)
        loop.runAll()
        #expect(source.isKnownToRun)
        for time in stride(from: 1_050, to: 2_000, by: 50) as StrideTo<UInt64> {
            #expect(source.beat(recorder, threshold: 100, at: time) == time + 50)
        }
        #expect(loop.pending == 0)
        #expect(recorder.snapshot().number == 0)
    }

    @Test func `a loop that has work gets an item at once`() {
        let source = idleSource()
        _ = source.beat(recorder, threshold: 100, at: 1_000)
        loop.runAll()
        _ = source.beat(recorder, threshold: 100, at: 1_050)
        idle.isIdle.withLock { $0 = false }
        #expect(source.beat(recorder, threshold: 100, at: 1_100) == 1_150)
        #expect(loop.pending == 1)
        #expect(recorder.snapshot().began == 1_100)
        #expect(idle.sent.withLock { $0 } == 1)
    }

    @Test func `the start is known since the last idle look`() {
        let source = idleSource()
        let now = monotonicNow()
        _ = source.beat(recorder, threshold: 100, at: now)
        loop.runAll()
        let later = (now / 50 + 20_000_000) * 50
        _ = source.beat(recorder, threshold: 100, at: later)
        idle.isIdle.withLock { $0 = false }
        _ = source.beat(recorder, threshold: 100, at: later + 50)
        #expect(source.startUncertainty(of: later + 50) == 50)
    }

    @Test func `loops with one threshold are looked at together`() {
        let sources = [idleSource(), idleSource()]
        #expect(sources[0].beat(recorder, threshold: 100, at: 1_010) == 1_050)
        #expect(sources[1].beat(recorder, threshold: 100, at: 1_040) == 1_050)
        #expect(sources[0].beat(recorder, threshold: 100, at: 1_049) == 1_050)
    }
}
