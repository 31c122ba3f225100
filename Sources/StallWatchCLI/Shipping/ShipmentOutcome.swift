import StallReports

/// What a collector's answer means for the reports of a request.
enum ShipmentOutcome: Sendable, Equatable {
    /// The collector has them.
    case delivered
    /// Send them again later.
    case retry(reason: String, after: Duration?, isRefusal: Bool)
    /// Send fewer at a time: one of them may be the reason.
    case split(reason: String)
    /// Keep them aside and go on with the next ones.
    case setAside(reason: String)

    /// - Parameters:
    ///   - answer: The collector's answer.
    ///   - reports: The number of reports in the request.
    ///   - isGivenUp: Whether the collector has refused everything for so long that it is not asked again.
    ///   - now: The wall clock.
    init(_ answer: OTLPAnswer, reports: Int, isGivenUp: Bool, now: Timestamp) {
        let reason = Self.reason(answer)
        let wait = RetryAfter.wait(answer.retryAfter, date: answer.date, now: now)
        switch answer.status {
        case 0, 408, 425, 429, 500...599:
            self = .retry(reason: reason, after: wait, isRefusal: false)
        case 200...299:
            guard let partial = answer.partialSuccess else {
                // A web page, for example: the URL is not a collector's.
                self = Self.refusal("\(reason): this is not an answer of OTLP", wait, isGivenUp)
                return
            }
            // The collector does not say which ones, and the specification forbids to send them again.
            self =
                partial.rejected > 0
                ? .setAside(reason: "the collector rejected \(partial.rejected) of \(reports): \(partial.message)")
                : .delivered
        case 100...399, 401...407, 409...411, 415...417, 421, 423, 424, 426...428, 451:
            // These are about the sender, the URL or the protocol, and not about a report.
            self = Self.refusal(reason, wait, isGivenUp)
        default:
            self = reports > 1 ? .split(reason: reason) : .setAside(reason: reason)
        }
    }

    private static func refusal(_ reason: String, _ wait: Duration?, _ isGivenUp: Bool) -> ShipmentOutcome {
        isGivenUp ? .setAside(reason: reason) : .retry(reason: reason, after: wait, isRefusal: true)
    }

    private static func reason(_ answer: OTLPAnswer) -> String {
        guard answer.status != 0 else { return answer.error.isEmpty ? "no answer" : answer.error }
        return "HTTP status \(answer.status)" + (answer.message.isEmpty ? "" : ", \(answer.message)")
    }
}
