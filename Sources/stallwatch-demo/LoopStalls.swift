import Foundation
import StallWatch

// Stalls of queues, pools, operations and loops that are busy although no turn is long.

/// Blocks a serial queue, which answers no heartbeat then.
func blockQueue(_ monitor: StallMonitor) async throws {
    let queue = DispatchQueue(label: "storage")
    let loop = try monitor.watch(.queue(queue, label: "storage"))
    defer { loop.stop() }
    try await Task.sleep(for: .milliseconds(300))
    await withCheckedContinuation { done in
        queue.async {
            sleepTooLong(for: .seconds(1))
            done.resume()
        }
    }
}

func blockTaskPool(_ monitor: StallMonitor) async throws {
    let loop = try monitor.watch(.cooperativePool(label: "tasks"))
    defer { loop.stop() }
    try await Task.sleep(for: .milliseconds(300))
    let end = DispatchTime.now() + .seconds(1)
    await withTaskGroup { group in
        for _ in 0..<300 {
            group.addTask { waitForSemaphore(until: end) }
        }
    }
}

private func waitForSemaphore(until end: DispatchTime) {
    _ = DispatchSemaphore(value: 0).wait(timeout: end)
}

/// Gives the main queue short work for two seconds, so that the main run loop never waits.
func saturateMainLoop(_ monitor: StallMonitor) async {
    let end = ContinuousClock.now + .seconds(2)
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
        @Sendable func turn() {
            compute(for: .milliseconds(5))
            if ContinuousClock.now < end { DispatchQueue.main.async(execute: turn) } else { done.resume() }
        }
        DispatchQueue.main.async(execute: turn)
    }
}

/// Runs a loop in a mode without sources: the call returns at once, so the thread computes instead of waiting.
func spinLoop(_ monitor: StallMonitor) async throws {
    try await monitor.withLoop("empty", runEmptyMode)
}

private func runEmptyMode(of loop: RunLoop) {
    let end = ContinuousClock.now + .seconds(4)
    while ContinuousClock.now < end {
        _ = loop.run(mode: RunLoop.Mode("empty"), before: .distantFuture)
    }
}

/// Runs a loop in a tracking mode, as while a user drags something, so that a timer of the default mode waits.
func starveDefaultMode(_ monitor: StallMonitor) async throws {
    try await monitor.withLoop("tracker", trackMouse)
}

private func trackMouse(in loop: RunLoop) {
    let tracking = RunLoop.Mode("tracking")
    let mouse = Timer(timeInterval: 0.01, repeats: true) { _ in }
    loop.add(mouse, forMode: tracking)
    let end = ContinuousClock.now + .seconds(3)
    while ContinuousClock.now < end {
        _ = loop.run(mode: tracking, before: Date(timeIntervalSinceNow: 1))
    }
    mouse.invalidate()
}

func awaitLateReply(_ monitor: StallMonitor) async {
    await monitor.withLimit(.milliseconds(250), "GET /feed") {
        await withCheckedContinuation { reply in
            DispatchQueue.global().asyncAfter(deadline: .now() + 1) { reply.resume() }
        }
    }
}

extension StallMonitor {
    /// Watches the run loop of a new thread, which has a timer that is due ten times a second, and stalls it with `work`.
    fileprivate func withLoop(_ label: String, _ work: @escaping @Sendable (RunLoop) -> Void) async throws {
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            Thread.detachNewThread { [self] in
                let timer = Timer(timeInterval: 0.1, repeats: true) { _ in }
                RunLoop.current.add(timer, forMode: .default)
                done.resume(
                    with: Result {
                        let loop = try watch(.runLoop(.current, label: label))
                        RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.3))
                        work(.current)
                        RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.3))
                        loop.stop()
                    })
                timer.invalidate()
            }
        }
    }
}
