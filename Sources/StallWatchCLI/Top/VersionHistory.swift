import StallReports

/// In which versions each stall was seen, and how long each was watched, by the reports alone.
struct VersionHistory: Sendable {
    enum Change: String, CaseIterable, Encodable, Sendable {
        /// Seen in the newest version only, and the versions before ran long enough to show it.
        case new
        /// Not seen any more, and the versions since ran long enough to show it.
        case gone
        /// Seen in the newest version, after versions that had lost it and ran long enough to show it.
        case regressed
    }

    /// A version with the hours that its processes were watched, at least, by the reports.
    struct Version: Encodable, Sendable {
        var name: String
        var hours: Double

        private enum CodingKeys: String, CodingKey { case name = "version", hours }
    }

    /// A version ran long enough if it had shown this many stalls at the known rate: none has a chance of 5 % then (e⁻³).
    static let enoughStalls = 3.0

    private var spans: [String: (began: Timestamp, time: ProcessSpans)] = [:]
    /// Stalls by fingerprint and version; `nil` for reports without a version.
    private var counts: [String: [String?: Int]] = [:]
    private var allSpans: ProcessSpans
    private let filter: ReportFilter

    init(_ filter: ReportFilter = ReportFilter()) {
        self.filter = filter
        allSpans = ProcessSpans(filter)
    }

    /// The version in a report's metadata, by the names that reports and OpenTelemetry give it; `nil` without one.
    static func version(of report: ReportSummary) -> String? {
        report.metadata["version"] ?? report.metadata["service.version"]
    }

    mutating func add(_ report: ReportSummary) {
        allSpans.add(report)
        let version = Self.version(of: report)
        if let fingerprint = report.fingerprint {
            counts[fingerprint, default: [:]][version, default: 0] &+= report.repeats &+ 1
        }
        guard let version else { return }
        let began = min(report.process.startedAt ?? report.startedAt, report.startedAt)
        var span = spans[version] ?? (began, ProcessSpans(filter))
        span.began = min(span.began, began)
        span.time.add(report)
        spans[version] = span
    }

    /// The versions in the order in which their first processes started.
    var versions: [Version] {
        spans.sorted { ($0.value.began, $0.key) < ($1.value.began, $1.key) }
            .map { Version(name: $0.key, hours: $0.value.time.hours) }
    }

    /// How long all processes with a report were watched: a lower bound.
    var hours: Double { allSpans.hours }

    func counts(of fingerprint: String?, in versions: [Version]) -> [Int] {
        let known = fingerprint.flatMap { counts[$0] } ?? [:]
        return versions.map { known[$0.name] ?? 0 }
    }

    var changes: [String: Change] {
        let versions = self.versions
        return counts.compactMapValues { known in Self.change(versions.map { known[$0.name] ?? 0 }, versions) }
    }

    func rates(in time: MonitoredTime) -> [String: HourlyRate] {
        counts.mapValues { HourlyRate(count: $0.values.reduce(0, &+), hours: time.hours) }
    }

    /// Judges a stall by its numbers in each version, the oldest first; `nil` if nothing changed, or if it is not known.
    static func change(_ counts: [Int], _ versions: [Version]) -> Change? {
        guard counts.count == versions.count, let newest = counts.indices.last, newest > 0,
            let last = counts.lastIndex(where: { $0 > 0 })
        else { return nil }
        func hours(_ range: Range<Int>) -> Double { versions[range].reduce(0) { $0 + $1.hours } }
        /// Whether versions without the stall had shown it at the rate of those of `seen`.
        func isMissing(from range: Range<Int>, atRateOf seen: Range<Int>) -> Bool {
            let time = max(hours(seen), MonitoredTime.minimumHours)
            let rate = Double(counts[seen].reduce(0, &+)) / time
            return rate * hours(range) >= enoughStalls
        }
        guard last == newest else {
            return isMissing(from: (last + 1)..<(newest + 1), atRateOf: 0..<(last + 1)) ? .gone : nil
        }
        guard let before = counts[..<newest].lastIndex(where: { $0 > 0 }) else {
            return isMissing(from: 0..<newest, atRateOf: newest..<(newest + 1)) ? .new : nil
        }
        guard before + 1 < newest else { return nil }
        return isMissing(from: (before + 1)..<newest, atRateOf: 0..<(before + 1)) ? .regressed : nil
    }
}

/// A number of events per hour with the bounds that contain the true rate in 95 of 100 cases.
struct HourlyRate: Encodable, Sendable, Equatable {
    let perHour: Double
    let low: Double
    let high: Double

    /// Byar's approximation of the Poisson limits (Breslow and Day, Statistical Methods in Cancer Research II, 1987);
    /// `count` and `hours` are not negative.
    init(count: Int, hours: Double) {
        let hours = max(hours, MonitoredTime.minimumHours)
        let quantile = 1.96
        func bound(_ events: Double, _ sign: Double) -> Double {
            guard events > 0 else { return 0 }
            let root = 1 - 1 / (9 * events) + sign * quantile / (3 * events.squareRoot())
            return max(events * root * root * root, 0) / hours
        }
        perHour = Double(count) / hours
        low = bound(Double(count), -1)
        high = bound(Double(count) + 1, 1)
    }

    var words: String { Self.words(perHour) }
    var interval: String { "\(Self.words(low)) to \(Self.words(high))" }

    /// A rate with as many digits as it needs to differ from 0.
    private static func words(_ rate: Double) -> String { rate.fixed(rate >= 0.1 || rate == 0 ? 2 : 4) }
}

/// How long programs were watched while they wrote reports: the basis of rates.
struct MonitoredTime: Encodable, Sendable, Equatable {
    enum Source: String, Encodable, Sendable {
        case given
        case statistics
        /// The reports: each process from its start to the end of its last stall. A lower bound.
        case reports
    }

    var hours: Double
    var source: Source

    private enum CodingKeys: String, CodingKey { case hours, source = "hoursFrom" }

    /// The minimum, one second, which keeps rates finite.
    static let minimumHours = 1.0 / 3_600

    init(hours: Double, source: Source) {
        self.hours = max(hours, Self.minimumHours)
        self.source = source
    }

    /// The best: a file may have the last run only, and reports count from a process's own start, so a tenth more
    /// is no contradiction.
    init(given: Double? = nil, statistics files: [String], reports: Double) {
        if let given {
            self.init(hours: given, source: .given)
            return
        }
        let watched = files.compactMap { try? MonitorStatistics(path: $0) }.reduce(.zero) { $0 + $1.watchedTime }
        let hours = watched / .seconds(3_600)
        let isKnown = hours > 0 && hours >= reports * 0.9
        self.init(hours: isKnown ? hours : reports, source: isKnown ? .statistics : .reports)
    }

    var words: String {
        let duration = (hours * 3_600_000).duration
        switch source {
        case .given: return duration
        case .statistics: return "\(duration) by the statistics"
        case .reports: return "at least \(duration) by the reports"
        }
    }
}

/// Computes from reports alone a lower bound of how long their processes were watched.
struct ProcessSpans {
    /// In microseconds since 1970.
    private var spans: [StallReport.ProcessDescription: (start: Int64, end: Int64)] = [:]
    private let since, until: Int64

    init(_ filter: ReportFilter = ReportFilter()) {
        since = filter.since?.microsecondsSince1970 ?? .min
        until = filter.until?.microsecondsSince1970 ?? .max
    }

    mutating func add(_ report: ReportSummary) {
        let began = report.startedAt.microsecondsSince1970
        let end = began.addingReportingOverflow(Int64(report.durationMilliseconds * 1_000)).partialValue
        let start = max(min(report.process.startedAt?.microsecondsSince1970 ?? began, began), since)
        let known = spans[report.process]
        spans[report.process] = (min(known?.start ?? start, start), max(known?.end ?? end, min(end, until)))
    }

    var hours: Double {
        let microseconds = spans.values.reduce(0.0) { $0 + (Double($1.end) - Double($1.start)) }
        return microseconds / 3_600_000_000
    }
}
