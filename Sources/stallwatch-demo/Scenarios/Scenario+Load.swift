import Foundation
import StallWatch
import Synchronization

extension Scenario {
    /// A healthy loop beside threads that compete for its CPU.
    static let loadScenarios: [Scenario] = [
        .quiet(
            "under-load", "timers, sources and main-queue blocks beside two threads that compute all the time",
            tolerating: "cpuContention"
        ) { context in
            let hogs = Hogs(count: 2)
            let timers = [BusyTimer(on: .main, every: 0.004), BusyTimer(on: .main, every: 0.021)]
            let end = ContinuousClock.now + context.loadTime
            while ContinuousClock.now < end {
                for callout in MainLoop.callouts { _ = await callout { spinTheCPU(for: .microseconds(300)) } }
                _ = await DrivenLoop.main.source1 { spinTheCPU(for: .microseconds(300)) }
                await pause(.milliseconds(2))
            }
            for timer in timers { timer.stop() }
            hogs.stop()
            return nil
        }
    ]
}

/// Threads that compute until `stop`.
private final class Hogs: Sendable {
    private let isOver = Atomic<Bool>(false)

    init(count: Int) {
        for index in 0..<count {
            Thread.detachNewThread { [self] in
                Thread.current.name = "hog-\(index)"
                while !isOver.load(ordering: .relaxed) {}
            }
        }
    }

    func stop() {
        isOver.store(true, ordering: .relaxed)
    }
}
