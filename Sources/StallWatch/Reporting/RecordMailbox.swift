import LinuxSupport
import Synchronization

/// Hands the newest state of each stall from one thread to another.
///
/// A state that is still waiting is replaced by a newer one of the same stall.
final class RecordMailbox: Sendable {
    /// The number of stalls that may wait.
    ///
    /// Beyond it, the oldest one that is over is dropped.
    static let capacity = 256

    private struct State {
        var records: [StallRecord] = []
        var isClosed = false
    }
    private let state = Mutex(State())
    private let arrival = Semaphore()

    /// Leaves the newest state of a stall; never waits.
    ///
    /// - Returns: Whether another record was dropped for it.
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

    /// Takes the oldest record; waits until there is one.
    ///
    /// - Parameter idle: Called before each wait.
    /// - Returns: The record, or `nil` once the mailbox is closed and empty.
    func next(beforeWaiting idle: () -> Void = {}) -> StallRecord? {
        while true {
            let (record, isClosed) = state.withLock { state in
                (state.records.isEmpty ? nil : state.records.removeFirst(), state.isClosed)
            }
            if let record { return record }
            if isClosed { return nil }
            idle()
            arrival.wait()
        }
    }

    /// Lets ``next(beforeWaiting:)`` return `nil` once everything has been taken.
    func close() {
        state.withLock { $0.isClosed = true }
        arrival.post()
    }
}
