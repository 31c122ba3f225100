import LinuxSupport

/// A request of OTLP with a monitor's statistics: the message `ExportMetricsServiceRequest`.
///
/// Sums are cumulative from the monitor's start to its end, so a point that arrives twice counts once.
struct MetricsRequest {
    /// `AGGREGATION_TEMPORALITY_CUMULATIVE` of metrics.proto.
    private static let cumulative = 2

    private let file: StatisticsFile
    /// Nanoseconds since 1970.
    private let begin: UInt64
    private let end: UInt64

    /// `end` is the time at which the statistics were written, in nanoseconds since 1970.
    init(_ file: StatisticsFile, end: UInt64) {
        self.file = file
        self.end = end
        let watched = file.loops.map(\.watchedSeconds).max() ?? 0
        begin = end - min(UInt64(min(watched * 1e9, Double(Int64.max / 2))), end)
    }

    func bytes(from resource: OTLPAttributes) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.scope(of: resource, metrics)
        return writer.bytes
    }

    private typealias Point = (label: String, value: OTLPAttributes.Value)

    private var metrics: [[UInt8]] {
        let loop = "stallwatch.loop.label"
        func points(_ value: (StatisticsFile.Loop) -> OTLPAttributes.Value) -> [Point] {
            file.loops.map { ($0.label, value($0)) }
        }
        let losses = [
            ("dropped", file.reportsDropped), ("lost", file.reportsLost), ("removed", file.reportsRemoved),
            ("failed_write", file.failedWrites),
        ]
        return [
            sum("stallwatch.loop.watched_time", "s", loop, points { .number($0.watchedSeconds) }),
            sum("stallwatch.loop.turns", "{turn}", loop, points { .integer(Int(clamping: $0.turns ?? 0)) }),
            sum("stallwatch.loop.busy_time", "s", loop, points { .number($0.busySeconds ?? 0) }),
            sum("stallwatch.loop.stalls", "{stall}", loop, points { .integer($0.stalls ?? 0) }),
            sum("stallwatch.loop.stalled_time", "s", loop, points { .number($0.stallSeconds ?? 0) }),
            sum(
                "stallwatch.suppressed", "{stall}", "stallwatch.reason",
                file.suppressed.sorted { $0.key < $1.key }.map { ($0.key, .integer($0.value)) }),
            sum(
                "stallwatch.report.losses", "{report}", "stallwatch.reason",
                losses.map { ($0.0, .integer($0.1 ?? 0)) }),
            histogram,
        ]
    }

    private func sum(_ name: String, _ unit: String, _ attribute: String, _ points: [Point]) -> [UInt8] {
        metric(name, unit) { metric in
            metric.message(7) { sum in
                for (label, value) in points {
                    sum.message(1) { point in
                        self.write(attribute, label, as: 7, to: &point)
                        switch value {
                        case .integer(let integer): point.fixed(6, UInt64(bitPattern: Int64(integer)))
                        case .number(let number): point.double(4, number)
                        case .text: break
                        }
                    }
                }
                sum.number(2, Self.cumulative)
                // is_monotonic
                sum.number(3, 1)
            }
        }
    }

    /// The durations of turns by loop.
    ///
    /// A bucket of the statistics has turns of 8/9 of its bound at least, and empty ones are left out. So the bounds that
    /// are there separate the same turns.
    private var histogram: [UInt8] {
        metric("stallwatch.loop.turn.duration", "s") { metric in
            metric.message(9) { histogram in
                for loop in file.loops {
                    let buckets = (loop.latency ?? []).sorted {
                        ($0.belowMicroseconds ?? .infinity) < ($1.belowMicroseconds ?? .infinity)
                    }
                    let bounded = buckets.filter { $0.belowMicroseconds != nil }
                    let counts = bounded.map(\.turns) + [buckets.dropFirst(bounded.count).reduce(0) { $0 &+ $1.turns }]
                    histogram.message(1) { point in
                        self.write("stallwatch.loop.label", loop.label, as: 9, to: &point)
                        point.fixed(4, counts.reduce(0, &+))
                        point.double(5, loop.busySeconds ?? 0)
                        point.fixed(6, counts)
                        point.fixed(7, bounded.map { (($0.belowMicroseconds ?? 0) / 1e6).bitPattern })
                    }
                }
                histogram.number(2, Self.cumulative)
            }
        }
    }

    private func metric(_ name: String, _ unit: String, _ data: (inout ProtobufWriter) -> Void) -> [UInt8] {
        var metric = ProtobufWriter()
        metric.string(1, name)
        metric.string(3, unit)
        data(&metric)
        return metric.bytes
    }

    private func write(_ key: String, _ label: String, as field: Int, to point: inout ProtobufWriter) {
        var attributes = OTLPAttributes()
        attributes.set(key, label)
        attributes.write(field, to: &point)
        point.fixed(2, begin)
        point.fixed(3, end)
    }
}

/// A monitor's statistics file, which is sent whenever it is new or has changed.
///
/// What was sent is not remembered after a restart: a point that arrives twice counts once.
final class ShippedStatistics {
    let path: String
    private let resource: OTLPAttributes
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
        resource = attributes
    }

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
