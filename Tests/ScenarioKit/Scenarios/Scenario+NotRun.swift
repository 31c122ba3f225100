import CoreFoundation
import Foundation
import Glibc
import StallWatch
import Synchronization

extension Scenario {
    /// A thread's run loop that no thread runs although a timer of it is due, and healthy loops that look alike.
    static let notRunScenarios: [Scenario] = [
        .stalling(
            "not-run", "a thread leaves its loop and sleeps while a timer of the loop is due", times: 24,
            ExpectedReport(kind: .notRun, loop: "left", function: "waitWithoutRunning(_:)")
        ) { context in
            try await context.withLeftLoop(afterwards: waitWithoutRunning) { loop in
                let timer = OneTimer(on: loop.runLoop, dueIn: .zero)
                let begin = SuspendingClock.now
                // It is looked at once a second, and two looks make a report.
                await pause(max(context.stall, .seconds(6)))
                timer.invalidate()
                return SuspendingClock.now - begin
            }
        },
        .stalling(
            "not-run-ever", "a thread never runs its loop, and sleeps while a timer of the loop is due", times: 24,
            ExpectedReport(kind: .notRun, loop: "left", function: "waitWithoutRunning(_:)")
        ) { context in
            let monitor = try await context.watch()
            let thread = await LoopThread.start("left") { thread in
                // Here, so that the loop's thread is known.
                _ = try? monitor.watch(.runLoop(thread.runLoop, label: "left"))
                waitWithoutRunning(thread)
            }
            await pause(.milliseconds(100))
            let timer = OneTimer(on: thread.driven.runLoop, dueIn: .zero)
            let begin = SuspendingClock.now
            await pause(max(context.stall, .seconds(6)))
            timer.invalidate()
            let duration = SuspendingClock.now - begin
            await thread.stop()
            return duration
        },
        .stallingOften(
            "not-run-async-main", "a program with an async @main has a timer of the main run loop", times: 24,
            ExpectedReport(kind: .notRun)
        ) { context in try await context.host(.asyncMainTimer) },
        .quiet("not-run-async-main-queue", "the same with a timer of the main queue, which fires") { context in
            _ = try await context.host(.asyncMainQueueTimer)
        },
        .quiet("not-run-process", "a thread starts a child process, whose source stays in a loop that it does not run")
        {
            context in
            try await context.withLeftLoop(afterwards: startAProcess) { _ in await pause(.seconds(4)) }
        },
        .quiet("not-run-nothing-due", "the same, and the loop's timer is not due") { context in
            try await context.withLeftLoop(afterwards: waitWithoutRunning) { loop in
                let timer = OneTimer(on: loop.runLoop, dueIn: .seconds(60))
                await pause(.seconds(3))
                timer.invalidate()
            }
        },
        .quiet("not-run-start-up", "the same, and the thread does other things before it runs the loop") { context in
            try await context.withLeftLoop(afterwards: startUp) { loop in
                let timer = OneTimer(on: loop.runLoop, dueIn: .zero)
                await pause(.seconds(4))
                timer.invalidate()
            }
        },
        .quiet("not-run-frames", "a thread runs its loop four times a second, and then sleeps") { context in
            try await context.withLeftLoop(afterwards: drawFrames) { loop in
                let timer = OneTimer(on: loop.runLoop, dueIn: .milliseconds(2_100))
                await pause(.seconds(5))
                timer.invalidate()
            }
        },
    ]
}

extension ScenarioContext {
    /// Watches the loop of a thread that runs it at first, so that the thread is known, and then does something else.
    fileprivate func withLeftLoop<Result: Sendable>(
        afterwards: @escaping LoopThread.Style, _ body: (DrivenLoop) async -> Result
    ) async throws -> Result {
        let mayLeave = OneWayFlag()
        return try await withLoop(
            "left",
            { thread in
                while !mayLeave.isSet { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, false) }
                afterwards(thread)
            }
        ) { loop in
            await pause(.milliseconds(100))
            mayLeave.set()
            await pause(.milliseconds(100))
            return await body(loop)
        }
    }
}

private final class OneWayFlag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

@inline(never)
private func waitWithoutRunning(_ thread: LoopThread) {
    while !thread.isStopping { usleep(20_000) }
    errno = 0
}

/// `Process.run()` adds a source to the loop of the thread that calls it, to hear of the end of the child.
@inline(never)
private func startAProcess(_ thread: LoopThread) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/true")
    guard (try? process.run()) != nil else { return }
    waitWithoutRunning(thread)
    // Runs the loop, which ends the child's entry in the table of processes.
    process.waitUntilExit()
}

/// A long start-up: each part takes less than the time between two looks.
@inline(never)
private func startUp(_ thread: LoopThread) {
    for _ in 0..<2 {
        sleepTooLong(for: .milliseconds(600))
        pollNothing(for: .milliseconds(600))
        spinTheCPU(for: .milliseconds(600))
    }
    LoopThread.runInMode(thread)
}

@inline(never)
private func drawFrames(_ thread: LoopThread) {
    for _ in 0..<8 {
        usleep(250_000)
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
    }
    // The longest gap is 250 ms, and ten of them are allowed.
    sleepTooLong(for: .milliseconds(2_400))
    LoopThread.runInMode(thread)
}
