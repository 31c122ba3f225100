import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// Writes a stall's file from the threshold on, and keeps the directory within its quota.
final class DirectorySink: Sink {
    private let directory: ReportDirectory
    private let quota: ReportQuota
    private let counts: ReportCounts
    /// Receives the reports that an earlier process left.
    private let recovered: @Sendable (StallReport) -> Void
    /// The ids of ongoing stalls that have a file.
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
            // A stall that ended before its first report is written only once the policy has decided to report it.
            if report.state == .ongoing { try write(report) }
        case .ended(let report, nil):
            try write(report)
            close(report)
        case .ended(let report, .some):
            try directory.remove(report.fileName)
            close(report)
        case .recovered, .escalated, .notice, .interval:
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

/// The ids of reports that this process's monitors are writing; their files must not be removed or recovered.
enum OpenReports {
    private static let ids = Mutex<Set<String>>([])

    static func insert(_ id: String) { ids.withLock { _ = $0.insert(id) } }
    static func remove(_ id: String) { ids.withLock { _ = $0.remove(id) } }
    static func contains(_ id: String) -> Bool { ids.withLock { $0.contains(id) } }
}
