import Foundation
import StallWatch

/// Freezes of other loops than the main one, of the task pool, and of a request.
extension NotesApp {
    /// Blocks a serial queue, which answers no heartbeat then.
    func makeThumbnails() {
        let queue = DispatchQueue(label: "thumbnails")
        watchLater(.queue(queue, label: "thumbnails")) {
            queue.async { Thread.sleep(forTimeInterval: 1) }
        }
    }

    func importFiles() {
        watchLater(.cooperativePool(label: "tasks")) {
            let end = DispatchTime.now() + .seconds(1)
            for _ in 0..<300 { Task.detached { waitForFile(until: end) } }
        }
    }

    /// Watches a loop for three seconds, and calls `freeze` when the first of its heartbeats have run.
    private func watchLater(_ loop: WatchedLoop, _ freeze: @escaping @Sendable () -> Void) {
        guard let watch = try? monitor.watch(loop) else { return }
        DispatchQueue.main.asyncAfter(deadline: .now() + 0.3, execute: freeze)
        DispatchQueue.main.asyncAfter(deadline: .now() + 3) { watch.stop() }
    }

    /// Runs a loop in a mode without sources: the call returns at once, so the thread computes instead of waiting.
    func syncInEmptyMode() {
        startLoop("sync") { loop in
            let end = ContinuousClock.now + .seconds(4)
            while ContinuousClock.now < end { _ = loop.run(mode: RunLoop.Mode("empty"), before: .distantFuture) }
        }
    }

    /// Runs a loop in a tracking mode, as while a user drags something, so that a timer of the default mode waits.
    func trackMouse() {
        startLoop("canvas") { loop in
            let tracking = RunLoop.Mode("tracking")
            let mouse = Timer(timeInterval: 0.01, repeats: true) { _ in }
            loop.add(mouse, forMode: tracking)
            let end = ContinuousClock.now + .seconds(3)
            while ContinuousClock.now < end { _ = loop.run(mode: tracking, before: Date(timeIntervalSinceNow: 1)) }
            mouse.invalidate()
        }
    }

    /// Runs the loop of a new thread, which has a timer that is due ten times a second, and passes it to `body`.
    private func startLoop(_ label: String, _ body: @escaping @Sendable (RunLoop) -> Void) {
        Thread.detachNewThread { [monitor] in
            let timer = Timer(timeInterval: 0.1, repeats: true) { _ in }
            RunLoop.current.add(timer, forMode: .default)
            guard let watch = try? monitor.watch(.runLoop(.current, label: label)) else { return }
            RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.3))
            body(.current)
            RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.3))
            watch.stop()
        }
    }

    func request() {
        Task.detached { [monitor] in
            await monitor.withLimit(.milliseconds(250), "GET /notes") {
                await withCheckedContinuation { reply in
                    DispatchQueue.global().asyncAfter(deadline: .now() + 1) { reply.resume() }
                }
            }
        }
    }
}
private func waitForFile(until end: DispatchTime) { _ = DispatchSemaphore(value: 0).wait(timeout: end) }
