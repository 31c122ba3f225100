import Foundation
import StallReports

/// Whether a monitor has been started or stopped, and the sequences that end with it.
///
/// Right although unchecked: the lock guards both variables. Mutex would need macOS 15.
final class MonitorPhase: @unchecked Sendable {
    private enum Phase { case made, started, stopped }

    private let lock = NSLock()
    private var phase = Phase.made
    private var streams: [AsyncStream<StallReport>.Continuation] = []

    /// Starts, or throws if that is too late.
    func start() throws(StallWatchError) {
        let before = lock.withLock {
            defer { if phase == .made { phase = .started } }
            return phase
        }
        switch before {
        case .made: return
        case .started:
            throw StallWatchError(.alreadyStarted, "the monitor has already been started: start it once")
        case .stopped:
            throw StallWatchError(.stopped, "the monitor has been stopped: create a new one to start again")
        }
    }

    /// Stops, and ends all sequences.
    func stop() {
        let ended = lock.withLock {
            phase = .stopped
            defer { streams = [] }
            return streams
        }
        for stream in ended { stream.finish() }
    }

    /// Returns a sequence that ends with the monitor.
    func stream() -> AsyncStream<StallReport> {
        AsyncStream { continuation in
            let isOver = lock.withLock {
                if phase != .stopped { streams.append(continuation) }
                return phase == .stopped
            }
            if isOver { continuation.finish() }
        }
    }
}
