import Synchronization

@testable import StallReports
@testable import StackCapture
@testable import StallWatch

/// The surroundings of a loop's supervisor: a clock that the test sets, and the records that the supervisor submits.
final class WatchedWorld: Sendable {
    let time: Atomic<UInt64>
    let records = Mutex<[StallRecord]>([])
    let suppressed = SuppressionCounter()

    init(at time: UInt64) {
        self.time = Atomic(time)
    }

    /// The states of all submitted records, in order.
    var states: [StallRecord.State] { records.withLock { $0.map(\.state) } }

    func services(_ capturer: any StackCapturing) -> WatchdogContext {
        WatchdogContext(
            capturer: capturer, now: { self.time.load(ordering: .relaxed) },
            submit: { record in self.records.withLock { $0.append(record) } }, suppressed: suppressed,
            options: WatchdogOptions()
        )
    }
}

extension LoopSupervisor {
    /// Polls the loop at `time` in `world`, and returns when to poll again.
    @discardableResult
    mutating func poll(at time: UInt64, in world: WatchedWorld) -> UInt64 {
        world.time.store(time, ordering: .relaxed)
        return poll(at: time, countingFrom: 0, suppressed: .processStopped)
    }
}
