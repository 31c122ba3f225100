import StallReports

/// How long programs were watched while they wrote reports: the basis of rates.
struct MonitoredTime: Sendable, Equatable {
    /// The source of the time.
    enum Source: String, Encodable, Sendable {
        /// The command line.
        case given
        /// Statistics files next to the reports.
        case statistics
        /// The reports: each process from its start to the end of its last stall. A lower bound.
        case reports
    }

    var hours: Double
    var source: Source

    /// The minimum, one second, which keeps rates finite.
    static let minimumHours = 1.0 / 3_600

    init(hours: Double, source: Source) {
        self.hours = max(hours, Self.minimumHours)
        self.source = source
    }
}
