import StallReports
import Synchronization

/// Distributes finished reports to all iterations over `monitor.reports`.
final class ReportStreams: Sendable {
    /// The maximum number of reports queued for one slow reader; when it is exceeded, the oldest is dropped.
    static let capacity = 64

    private struct State {
        var continuations: [Int: AsyncStream<StallReport>.Continuation] = [:]
        var nextKey = 0
        var isFinished = false
    }
    private let state = Mutex(State())

    /// Returns a new stream of the reports from now on, which ends with the monitor.
    func stream() -> AsyncStream<StallReport> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: StallReport.self, bufferingPolicy: .bufferingNewest(Self.capacity)
        )
        let key: Int? = state.withLock { state in
            guard !state.isFinished else { return nil }
            state.nextKey += 1
            state.continuations[state.nextKey] = continuation
            return state.nextKey
        }
        guard let key else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.continuations.removeValue(forKey: key) }
        }
        return stream
    }

    /// Adds a report to every stream; returns the number of reports dropped from full streams.
    func yield(_ report: StallReport) -> Int {
        // Yield outside the lock, because a reader that ends takes the lock.
        let continuations = state.withLock { Array($0.continuations.values) }
        return continuations.reduce(into: 0) { dropped, continuation in
            if case .dropped = continuation.yield(report) { dropped += 1 }
        }
    }

    func finish() {
        let continuations = state.withLock { state in
            state.isFinished = true
            defer { state.continuations.removeAll() }
            return Array(state.continuations.values)
        }
        for continuation in continuations { continuation.finish() }
    }
}
