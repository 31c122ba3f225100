import LinuxSupport
import Synchronization

/// Passes the newest state of each stall from one thread to another.
///
/// A newer state replaces a queued state of the same stall.
final class RecordMailbox: Sendable {
    /// The maximum number of queued stalls.
    ///
    /// When it is exceeded, the mailbox drops the oldest finished stall, or the oldest stall if all are ongoing.
    static let capacity = 256

    private struct State {
        var records: [StallRecord] = []
        var isClosed = false
        /// Whether the reader still works on the record that it took last.
        var isInWork = false
    }
    private let state = Mutex(State())
    private let arrival = Semaphore()

    /// Queues the newest state of a stall; never waits.
    ///
    /// - Returns: Whether a record was dropped to make room.
    func put(_ record: StallRecord) -> Bool {
        defer { arrival.post() }
        return state.withLock { state in
            if let waiting = state.records.firstIndex(where: { $0.id == record.id }) {
                state.records[waiting] = record
                return false
            }
            state.records.append(record)
            guard state.records.count > Self.capacity else { return false }
            state.records.remove(at: state.records.firstIndex { $0.state != .ongoing } ?? 0)
            return true
        }
    }

    /// Whether no record is queued, and the reader is done with all that it took.
    var isIdle: Bool { state.withLock { $0.records.isEmpty && !$0.isInWork } }

    /// Takes the oldest record, and waits for one if the mailbox is empty.
    ///
    /// - Parameter idle: Called before each wait.
    /// - Returns: The record; `nil` once the mailbox is closed and empty.
    func next(beforeWaiting idle: () -> Void = {}) -> StallRecord? {
        while true {
            let (record, isClosed) = state.withLock { state in
                state.isInWork = !state.records.isEmpty
                return (state.records.isEmpty ? nil : state.records.removeFirst(), state.isClosed)
            }
            if let record { return record }
            if isClosed { return nil }
            idle()
            arrival.wait()
        }
    }

    /// Makes ``next(beforeWaiting:)`` return `nil` once the mailbox is empty.
    func close() {
        state.withLock { $0.isClosed = true }
        arrival.post()
    }
}
