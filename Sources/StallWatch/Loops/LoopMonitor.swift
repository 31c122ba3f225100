internal import CoreFoundation
import Glibc

/// One watched loop, as the watchdog sees it: what it does now, and how to stop following it.
final class LoopMonitor: Sendable {
    let label: String
    let kind: StallReport.LoopKind
    /// The kernel id of the thread that runs the loop.
    let thread: Int32
    let recorder: TurnRecorder
    private let observers: RunLoopObservers

    /// Starts following `loop`.
    init(_ loop: WatchedLoop, alarm: WatchdogAlarm) throws(StallWatchError) {
        label = loop.label
        recorder = TurnRecorder(alarm: alarm)
        switch loop.source {
        case .mainRunLoop:
            kind = .runLoop
            // The main thread's id is the process's (gettid(2)).
            thread = getpid()
            guard let runLoop = CFRunLoopGetMain(), let common = kCFRunLoopCommonModes,
                let observers = RunLoopObservers(runLoop: runLoop, modes: [common], recorder: recorder)
            else {
                throw StallWatchError(.systemFailure, "the main run loop cannot be observed: memory is out")
            }
            self.observers = observers
        }
    }

    /// What the loop does now.
    func snapshot() -> TurnSnapshot {
        var snapshot = recorder.snapshot()
        snapshot.isWaitingUnobserved = snapshot.began != nil && observers.isWaiting
        return snapshot
    }

    /// Stops following the loop.
    func remove() {
        observers.remove()
    }
}
