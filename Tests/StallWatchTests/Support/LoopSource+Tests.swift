@testable import StallWatch

extension LoopSource {
    /// Sends a heartbeat if one is due, in a process of which nothing is known.
    func beat(_ recorder: TurnRecorder, threshold: UInt64, at now: UInt64) -> UInt64? {
        beat(recorder, threshold: threshold, at: now, isQuiet: { false })
    }
}
