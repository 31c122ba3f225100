internal import Foundation
import StallReports

/// Distributes finished reports to all sequences of ``StallMonitor/makeReports()``.
///
/// `@unchecked Sendable`: the lock guards the variables. Mutex would need macOS 15.
final class ReportStreams: @unchecked Sendable {
    /// The maximum number of reports queued for one slow reader; when it is exceeded, the oldest is dropped.
    static let capacity = 64

    private let lock = NSLock()
    private var continuations: [Int: AsyncStream<StallReport>.Continuation] = [:]
    private var nextKey = 0
    private var isFinished = false

    /// Returns a new stream of the reports from now on, which ends with the monitor.
    func stream() -> AsyncStream<StallReport> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: StallReport.self, bufferingPolicy: .bufferingNewest(Self.capacity)
        )
        lock.withLock {
            guard !isFinished else { return continuation.finish() }
            nextKey += 1
            continuations[nextKey] = continuation
            continuation.onTermination = { [weak self, key = self.nextKey] _ in
                guard let self else { return }
                lock.withLock { _ = self.continuations.removeValue(forKey: key) }
            }
        }
        return stream
    }

    /// Whether there is no reader.
    var isEmpty: Bool { lock.withLock { continuations.isEmpty } }

    /// Adds a report to every stream; returns the number of reports dropped from full streams.
    func yield(_ report: StallReport) -> Int {
        // Yield outside the lock, because a reader that ends takes the lock.
        let open = lock.withLock { Array(continuations.values) }
        return open.reduce(into: 0) { dropped, continuation in
            if case .dropped = continuation.yield(report) { dropped += 1 }
        }
    }

    func finish() {
        let ended = lock.withLock {
            isFinished = true
            defer { continuations.removeAll() }
            return Array(continuations.values)
        }
        for continuation in ended { continuation.finish() }
    }
}
