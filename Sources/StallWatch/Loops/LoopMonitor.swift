import Synchronization

/// One watched loop: its turns, its source and its threshold.
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

    /// Sends a heartbeat if one is due, and reads what the loop does at `now`.
    func poll(at now: UInt64) -> LoopPoll {
        let nextHeartbeat = source.beat(recorder, threshold: threshold, at: now)
        var turn = recorder.snapshot()
        turn.isWaitingUnobserved = turn.began != nil && !turn.isGap && source.isWaitingUnobserved()
        return LoopPoll(
            turn: turn, target: target, mode: source.modeName(turn.mode),
            startUncertainty: turn.began.flatMap(source.startUncertainty), runFunction: source.runFunction,
            nextHeartbeat: nextHeartbeat
        )
    }

    /// The threads whose stacks explain a stall that lasts now.
    var target: CaptureTarget { source.target(of: recorder) }
}
