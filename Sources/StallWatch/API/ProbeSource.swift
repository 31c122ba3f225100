import StallReports
import LinuxSupport
import Synchronization

/// The source of a loop that reports its turns through a probe.
final class ProbeSource: LoopSource {
    let kind = LoopKind.probe
    private let probe: LoopProbe
    private let recorder: TurnRecorder

    init(_ probe: LoopProbe, _ recorder: TurnRecorder) throws(StallWatchError) {
        self.probe = probe
        self.recorder = recorder
        try probe.attach(recorder)
    }

    func isInTurn(_ addresses: [UInt64]?) -> Bool { probe.isInTurn(addresses) }

    func remove() {
        probe.detach(recorder)
    }
}
