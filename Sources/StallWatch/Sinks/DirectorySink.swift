import StallReports

/// Keeps a report's file from the threshold on, and the directory inside its quota.
final class DirectorySink: Sink {
    private let directory: ReportDirectory
    private let quota: ReportQuota
    private let counts: ReportCounts
    /// Where reports go that an earlier process has left.
    private let recovered: @Sendable (StallReport) -> Void
    /// Stalls that last and have a file.
    private var open: Set<String> = []

    init(
        _ directory: ReportDirectory, quota: ReportQuota, counts: ReportCounts,
        recovered: @escaping @Sendable (StallReport) -> Void
    ) {
        self.directory = directory
        self.quota = quota
        self.counts = counts
        self.recovered = recovered
    }

    func start() {
        let left = directory.recover()
        enforceQuota()
        counts.add { $0.reportsRecovered += left.count }
        left.forEach(recovered)
    }

    func take(_ delivery: Delivery) throws(StallWatchError) {
        switch delivery {
        case .began(let report), .updated(let report):
            // A stall that was over before it was first reported is written when it is known whether it is to be reported.
            if report.state == .ongoing { try write(report) }
        case .ended(let report, nil):
            try write(report)
            close(report)
        case .ended(let report, .some):
            try directory.remove(report.fileName)
            close(report)
        case .recovered, .escalated, .notice:
            break
        }
    }

    func finish() {
        for id in open { OpenReports.remove(id) }
    }

    private func write(_ report: StallReport) throws(StallWatchError) {
        let isNew = open.insert(report.id).inserted
        OpenReports.insert(report.id)
        try directory.write(report)
        if isNew { enforceQuota() }
    }

    private func close(_ report: StallReport) {
        open.remove(report.id)
        OpenReports.remove(report.id)
    }

    private func enforceQuota() {
        let removed = directory.enforce(quota)
        if removed > 0 { counts.add { $0.reportsRemoved += removed } }
    }
}
