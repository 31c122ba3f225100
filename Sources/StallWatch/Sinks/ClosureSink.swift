import StallReports

/// Calls the app's closure with each report.
final class ClosureSink: Sink {
    private let body: @Sendable (StallReport) throws -> Void

    init(_ body: @escaping @Sendable (StallReport) throws -> Void) {
        self.body = body
    }

    func take(_ delivery: Delivery) throws(StallWatchError) {
        switch delivery {
        case .ended(let report, nil), .recovered(let report):
            do {
                try body(report)
            } catch {
                throw StallWatchError(.failedSink, "the app's sink threw an error: \(error)")
            }
        default:
            break
        }
    }
}
