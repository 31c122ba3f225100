import CoreFoundation
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

extension Scenario {
    /// Threads that run a loop of their own, and pools whose threads do.
    static let residentScenarios: [Scenario] = poolLoopScenarios + answerScenarios

    private static let utility = WatchedLoop.globalQueue(.utility, label: "utility")

    private static let poolLoopScenarios: [Scenario] = [
        filled("pool-run-loops", "run a run loop", in: "runTheLoop(for:)") { _, duration in runTheLoop(for: duration) },
        filled("pool-run-loops-before", "run a run loop", in: "runTheLoop(for:)", isFullBefore: true) { _, duration in
            runTheLoop(for: duration)
        },
        filled(
            "pool-waits", "wait for a run loop of a second block in the same queue",
            in: "waitForTheConnection(on:for:)", waitForTheConnection),
        filled(
            "pool-waits-before", "wait for a run loop of a second block in the same queue",
            in: "waitForTheConnection(on:for:)", isFullBefore: true, waitForTheConnection),
        .quiet("pool-calls-back", "300 blocks of a global queue submit a second one each, which calls back") {
            context in
            try await context.warmUp(utility)
            let (queue, group) = (DispatchQueue.global(qos: .utility), DispatchGroup())
            for _ in 0..<300 {
                queue.async(group: group) { queue.async(group: group) { sleepTooLong(for: .microseconds(10)) } }
            }
            await withCheckedContinuation { done in group.notify(queue: queue) { done.resume() } }
        },
        .stalling(
            "run-until-pool-timer", "a thread's run of its loop is to be ended by a full global queue", times: 3,
            .heartbeat("utility", .globalQueue, in: "waitForTheSemaphore(for:)", kind: .starvation)
        ) { context in
            try await context.warmUp(utility)
            let queue = DispatchQueue.global(qos: .utility)
            let thread = await LoopThread.start("reader", LoopThread.runOnce)
            async let stall = fillPool(for: context.stall, { queue.async(execute: $0) }, waitForTheSemaphore)
            queue.asyncAfter(deadline: .now() + 0.05) { CFRunLoopStop(thread.driven.runLoop) }
            let duration = await stall
            await thread.stop()
            return duration
        },
        .quiet("run-until-own-timer", "the same with a timer of that loop, and the queue is not watched") { context in
            let queue = DispatchQueue.global(qos: .utility)
            async let filled = fillPool(for: context.threshold * 2, { queue.async(execute: $0) }, waitForTheSemaphore)
            try await context.withLoop("reader") { loop in
                _ = await loop.timer { CFRunLoopStop(CFRunLoopGetCurrent()) }
            }
            _ = await filled
        },
        .quiet("run-until-limit", "run(until:) off main ends at its date while the pool of that priority is full") {
            _ in
            let (queue, group) = (DispatchQueue.global(qos: .utility), DispatchGroup())
            let hasEnded = DispatchSemaphore(value: 0)
            let wasLate = Atomic(false)
            for _ in 0..<300 {
                queue.async(group: group) {
                    // The run ends by a timer of the same priority, whose threads are others.
                    if hasEnded.wait(timeout: .now() + 30) == .timedOut { wasLate.store(true, ordering: .relaxed) }
                }
            }
            await onThread("reader") {
                let port = Source1(on: CFRunLoopGetCurrent(), mode: kCFRunLoopDefaultMode) { _ in }
                RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.05))
                port.invalidate()
                for _ in 0..<300 { hasEnded.signal() }
            }
            await withCheckedContinuation { done in group.notify(queue: .main) { done.resume() } }
            guard !wasLate.load(ordering: .relaxed) else { throw NoResult(sentence: "the run waited for the pool") }
        },
        .quiet("timer-in-task", "a task adds a timer to its thread's loop, which nothing runs") { context in
            let timer = await Task.detached { OwnTimer.ofThisThread() }.value
            await pause(context.threshold * 3)
            timer.invalidate()
            guard !timer.hasFired else { throw NoResult(sentence: "the timer has fired") }
        },
        .quiet("timer-in-task-of-main", "a task adds a timer to the main loop, which fires") { context in
            let timer = await Task.detached { OwnTimer(on: CFRunLoopGetMain()) }.value
            await pause(context.threshold * 3)
            timer.invalidate()
            guard timer.hasFired else { throw NoResult(sentence: "the timer has not fired") }
        },
        .quiet("timer-in-pool", "a block of a global queue adds a timer to its thread's loop, which nothing runs") {
            context in
            try await context.warmUp(utility)
            let timer = await withCheckedContinuation { continuation in
                DispatchQueue.global(qos: .utility).async { continuation.resume(returning: OwnTimer.ofThisThread()) }
            }
            await pause(context.threshold * 3)
            timer.invalidate()
        },
    ]

    /// Blocks that do `work` occupy all workers of a global queue, which is watched before that or after it.
    private static func filled(
        _ name: String, _ summary: String, in function: String, isFullBefore: Bool = false,
        _ work: @escaping @Sendable (DispatchQueue, Duration) -> Void
    ) -> Scenario {
        .stalling(
            name, "300 blocks of a global queue \(summary)\(isFullBefore ? ", and the watch begins later" : "")",
            times: 3, .heartbeat("utility", .globalQueue, in: function, kind: .starvation)
        ) { context in
            let queue = DispatchQueue.global(qos: .utility)
            let fill: @Sendable (Duration) async -> Duration = { duration in
                await fillPool(for: duration, { queue.async(execute: $0) }, { work(queue, $0) })
            }
            guard isFullBefore else {
                try await context.warmUp(utility)
                return await fill(context.stall)
            }
            let monitor = try await context.watch()
            async let filled = fill(context.stall + context.threshold / 2)
            await pause(context.threshold / 2)
            let begin = SuspendingClock.now
            try monitor.watch(utility)
            _ = await filled
            return SuspendingClock.now - begin
        }
    }

    private static let answerScenarios: [Scenario] = [
        .stalling(
            "resident-answer", "the main thread waits for the answer of a resident thread, which sleeps", times: 2,
            .main(.source0, in: "waitForTheAnswer(of:atMost:_:)", lock: .dispatchSemaphore)
                .besideTurns(of: ["resident"])
        ) { context in
            let thread = await LoopThread.start("resident", LoopThread.runOnce)
            let loop = thread.driven
            // A report has the other loops of its own monitor.
            let watch = try context.monitor.watch(.runLoop(thread.runLoop, label: "resident"), threshold: .seconds(60))
            let stall = await DrivenLoop.main.source0 {
                waitForTheAnswer(of: loop, atMost: .seconds(60)) { sleepTooLong(for: context.stall) }
            }
            // The last report has what the loop did until the end.
            await pause(context.threshold)
            watch.stop()
            await thread.stop()
            return stall
        },
        .quiet("resident-answers", "the main thread waits for a resident thread, which answers soon") { context in
            try await context.withLoop("resident") { loop in
                _ = await DrivenLoop.main.source0 {
                    waitForTheAnswer(of: loop, atMost: .seconds(60)) { sleepTooLong(for: .milliseconds(1)) }
                }
            }
        },
        .quiet("resident-answers-later", "the resident thread gives its answer to the main queue") { context in
            try await context.withLoop("resident", threshold: .seconds(60)) { loop in
                await MainLoop.untilDone { done in
                    loop.perform {
                        sleepTooLong(for: context.threshold * 2)
                        done()
                    }
                }
            }
        },
        .stalling(
            "resident-has-ended", "the main thread waits for the answer of a thread whose loop has ended", times: 2,
            .main(.source0, in: "waitForTheAnswer(of:atMost:_:)", lock: .dispatchSemaphore).besideTurns(of: [])
        ) { context in
            let thread = await LoopThread.start("ended", LoopThread.runOnce)
            await thread.stop()
            return await DrivenLoop.main.source0 { waitForTheAnswer(of: thread.driven, atMost: context.stall) {} }
        },
        .stalling(
            "run-is-not-stopped", "the main thread joins a thread whose RunLoop.run() goes on after CFRunLoopStop",
            times: 2, .main(.source0, in: "joinTheResident(running:for:)")
        ) { context in
            await DrivenLoop.main.source0 {
                joinTheResident(running: { _ in RunLoop.current.run() }, for: context.stall)
            }
        },
        .quiet("run-is-stopped", "the same with CFRunLoopRun, which CFRunLoopStop ends") { context in
            _ = await DrivenLoop.main.source0 {
                joinTheResident(running: { _ in CFRunLoopRun() }, for: context.threshold * 2)
            }
        },
    ]
}

/// A timer that fires a hundred times a second, if its loop runs.
///
/// `@unchecked Sendable`: CFRunLoopTimerInvalidate may be called on any thread.
private final class OwnTimer: @unchecked Sendable {
    private let timer: CFRunLoopTimer?
    private let firings = FiringCount()

    /// A timer of the loop of the calling thread, as of `Timer.scheduledTimer`.
    static func ofThisThread() -> OwnTimer { OwnTimer(on: CFRunLoopGetCurrent()) }

    init(on loop: CFRunLoop) {
        timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0.01, 0, 0) { [firings] _ in
            firings.value.add(1, ordering: .relaxed)
        }
        CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode)
    }

    var hasFired: Bool { firings.value.load(ordering: .relaxed) > 0 }

    func invalidate() { CFRunLoopTimerInvalidate(timer) }
}

private final class FiringCount: Sendable {
    let value = Atomic(0)
}

/// Runs the calling thread's loop with a port, as a connection with a time limit does.
@inline(never)
func runTheLoop(for duration: Duration) {
    // Without the port the run would end at once.
    let port = Source1(on: CFRunLoopGetCurrent(), mode: kCFRunLoopDefaultMode) { _ in }
    let end = SuspendingClock.now + duration
    while case let left = end - SuspendingClock.now, left > .zero {
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, left.seconds, false)
    }
    port.invalidate()
}

/// Waits for a run loop that another block of the queue runs: it cannot start while all threads wait here.
@inline(never)
private func waitForTheConnection(on queue: DispatchQueue, for duration: Duration) {
    let isOpen = DispatchSemaphore(value: 0)
    queue.async {
        runTheLoop(for: .milliseconds(1))
        isOpen.signal()
    }
    _ = isOpen.wait(timeout: .now() + duration.seconds)
    errno = 0
}

@inline(never)
private func waitForTheAnswer(of loop: DrivenLoop, atMost limit: Duration, _ question: @escaping @Sendable () -> Void) {
    let answer = DispatchSemaphore(value: 0)
    loop.perform {
        question()
        answer.signal()
    }
    _ = answer.wait(timeout: .now() + limit.seconds)
    errno = 0
}

/// Joins a thread whose loop is stopped at once; `run` returns then, or once the loop's only timer has fired.
@inline(never)
private func joinTheResident(running run: @escaping @Sendable (DrivenLoop) -> Void, for duration: Duration) {
    var thread = pthread_t()
    let job = Unmanaged.passRetained(ResidentJob(run: run, limit: duration))
    let status = pthread_create(
        &thread, nil,
        { argument in
            guard let argument else { return nil }
            let job = Unmanaged<ResidentJob>.fromOpaque(argument).takeRetainedValue()
            let loop: CFRunLoop = CFRunLoopGetCurrent()
            let end = CFAbsoluteTimeGetCurrent() + job.limit.seconds
            CFRunLoopAddTimer(loop, CFRunLoopTimerCreateWithHandler(nil, end, 0, 0, 0) { _ in }, kCFRunLoopDefaultMode)
            CFRunLoopPerformBlock(loop, kCFRunLoopDefaultMode) { CFRunLoopStop(loop) }
            job.run(DrivenLoop(runLoop: loop))
            return nil
        }, job.toOpaque())
    if status == 0 { pthread_join(thread, nil) } else { job.release() }
    errno = status
}

private final class ResidentJob: Sendable {
    let run: @Sendable (DrivenLoop) -> Void
    let limit: Duration

    init(run: @escaping @Sendable (DrivenLoop) -> Void, limit: Duration) { (self.run, self.limit) = (run, limit) }
}
