import Synchronization

/// One watched loop, as the watchdog sees it: what it does now, whose stack tells why, and how to stop following it.
final class LoopMonitor: Sendable {
    let label: String
    let recorder: TurnRecorder
    let source: any LoopSource
    private let currentThreshold: Atomic<UInt64>

    /// - Parameter threshold: How long a turn may take, in nanoseconds.
    init(label: String, threshold: UInt64, recorder: TurnRecorder, source: any LoopSource) {
        self.label = label
        self.recorder = recorder
        self.source = source
        currentThreshold = Atomic(threshold)
    }

    /// How long a turn may take, in nanoseconds.
    var threshold: UInt64 { currentThreshold.load(ordering: .relaxed) }

    /// Changes how long a turn may take, in nanoseconds.
    func setThreshold(_ threshold: UInt64) {
        currentThreshold.store(threshold, ordering: .relaxed)
    }

    /// What the loop does now.
    func snapshot() -> TurnSnapshot {
        var snapshot = recorder.snapshot()
        snapshot.isWaitingUnobserved = snapshot.began != nil && !snapshot.isGap && source.isWaitingUnobserved()
        return snapshot
    }
}
