/// One side of a comparison: the reports in groups, and the monitored time.
struct ReportSet {
    private(set) var groups = StallGroups()
    let time: MonitoredTime

    /// Reads the reports at `path`, which is a file, a directory or `-`; `hours` is the monitored time, if it is known.
    init(_ path: String, filters: FilterOptions, strict: Bool, hours: Double?) throws {
        let reports = try filters.read([path], strict: strict)
        var statistics = StatisticsSum()
        for other in reports.files.others {
            if let file = try? StatisticsFile(path: other) { statistics.add(file) }
        }
        var spans = ProcessSpans()
        var groups = StallGroups()
        do {
            try reports.forEachSummary { report, origin in
                spans.add(report)
                groups.add(report, origin)
            }
        } catch let failure as CommandFailure where failure.status == .noInput && groups.reports == 0 {
            // A side without reports is a program that never stalled.
        }
        self.groups = groups
        if let hours {
            time = MonitoredTime(hours: hours, source: .given)
        } else if statistics.watchedSeconds > 0 {
            time = MonitoredTime(hours: statistics.watchedSeconds / 3_600, source: .statistics)
        } else {
            time = MonitoredTime(hours: spans.hours, source: .reports)
        }
    }
}
