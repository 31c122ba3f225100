import LinuxSupport

/// A monitor's statistics file, which is sent whenever it is new or has changed.
///
/// What was sent is not remembered after a restart: a point that arrives twice counts once.
final class ShippedStatistics {
    let path: String
    private let resource: OTLPResource
    private let log: (String) -> Void
    /// The file that was sent or refused last.
    private var done: [UInt64] = []
    private var reading: [UInt64] = []

    /// `common` are attributes of every resource; `log` receives a sentence about what goes wrong.
    init(path: String, common: OTLPAttributes, log: @escaping (String) -> Void) {
        self.path = path
        self.log = log
        var attributes = common
        // The name that the specification asks for where none is known (semantic conventions, "service").
        if attributes["service.name"] == nil { attributes.set("service.name", "unknown_service") }
        if attributes["host.name"] == nil { attributes.set("host.name", ReportSummary.hostname ?? "") }
        attributes.set("stallwatch.statistics.path", path)
        resource = OTLPResource(attributes: attributes)
    }

    /// The statistics as a request; `nil` if there is nothing new.
    func nextRequest() -> [UInt8]? {
        guard let status = FileStatus(path: path), status.isRegular else { return nil }
        reading = status.identity + [UInt64(clamping: status.changedAt), UInt64(clamping: status.size)]
        guard reading != done else { return nil }
        do throws(UnreadableReport) {
            return MetricsRequest(try StatisticsFile(path: path), end: UInt64(clamping: status.changedAt))
                .bytes(from: resource)
        } catch {
            log("\(path) is not sent: \(error.reason)")
            done = reading
            return nil
        }
    }

    func apply(_ outcome: ShipmentOutcome) {
        switch outcome {
        case .delivered: done = reading
        case .setAside(let reason), .split(let reason):
            log("The collector does not take the statistics \(path): \(reason)")
            done = reading
        case .retry: break
        }
    }
}
