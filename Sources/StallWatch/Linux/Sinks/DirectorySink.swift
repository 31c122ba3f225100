import LinuxSupport
import StallReports

/// Writes a stall's file from the threshold on, and keeps the directory within its quota.
final class DirectorySink: Sink {
    /// The most fingerprints whose newest suppressed stall has a file; the next report counts those of others.
    private static let maximumNewest = 1024
    /// The fewest new reports that may come between two listings of a directory with room; otherwise 1 % of the quota.
    ///
    /// Monitors that share the directory divide them among themselves.
    private static let leastUnlisted = 16

    private let directory: ReportDirectory
    private let quota: ReportQuota
    private let counts: ReportCounts
    private let recovered: @Sendable (StallReport) -> Void
    /// A lower bound of what is left of the quota, if only this sink writes.
    private var room = ReportDirectory.Room()
    /// The number of new reports after which the directory is listed again: others may write there, too.
    private var unlisted = 0
    /// The ids of ongoing stalls that have a file.
    private var open: Set<String> = []
    private var newest: [String: (id: String, file: String)] = [:]

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
        directory.holdLock()
        let left = directory.recover(newest: quota.reports)
        enforceQuota()
        counts.add { $0.reportsRecovered += left.count }
        left.forEach(recovered)
    }

    func receive(_ delivery: Delivery) throws(StallWatchError) {
        guard let report = delivery.report else { return }
        switch delivery.event {
        case .began, .updated:
            // A stall that ended before its first report is written only once the policy has decided to report it.
            guard report.state == .ongoing || open.contains(report.id) else { return }
            try write(report)
            // The final report may be lost.
            if report.state != .ongoing { close(report) }
        case .ended:
            if delivery.isCut { try directory.end(report) } else { try write(report) }
            close(report)
            if !delivery.isCut { replaceNewest(of: report) }
        case .suppressed:
            try keepNewest(report)
        default: break
        }
    }

    func checkReadiness() throws(StallWatchError) { try directory.check() }

    func finish() -> [StallWatchError] {
        newest.values.forEach(settle)
        for id in open { OpenReports.remove(id) }
        directory.unlock()
        return []
    }

    /// Writes a suppressed stall in place of the suppressed one before it, which it counts.
    private func keepNewest(_ report: StallReport) throws(StallWatchError) {
        guard let fingerprint = report.fingerprint else {
            try directory.remove(report.fileName)
            return close(report)
        }
        OpenReports.insert(report.id)
        try directory.write(report, to: report.newestFileName)
        room.bytes -= directory.size(of: report.newestFileName) ?? 0
        try directory.remove(report.fileName)
        open.remove(report.id)
        replaceNewest(of: report)
        newest[fingerprint] = (report.id, report.newestFileName)
        if newest.count > Self.maximumNewest, let (_, other) = newest.popFirst() { remove(other) }
        enforceQuota()
    }

    /// Removes the file of the newest suppressed stall if a later report counts it; otherwise it is final.
    private func replaceNewest(of report: StallReport) {
        guard let fingerprint = report.fingerprint, let last = newest.removeValue(forKey: fingerprint) else { return }
        // The policy forgets fingerprints that it has not seen for long, and counts from 1 again.
        guard report.repeats > 0 else { return settle(last) }
        remove(last)
    }

    private func remove(_ last: (id: String, file: String)) {
        // If it cannot be removed, its stalls are counted twice.
        try? directory.remove(last.file)
        OpenReports.remove(last.id)
    }

    private func settle(_ last: (id: String, file: String)) {
        directory.settle(last.file)
        OpenReports.remove(last.id)
    }

    private func write(_ report: StallReport) throws(StallWatchError) {
        let isNew = open.insert(report.id).inserted
        OpenReports.insert(report.id)
        directory.holdLock()
        try directory.write(report)
        // An older state took some of it: the next listing gives that back.
        room.bytes -= directory.size(of: report.fileName) ?? 0
        if isNew { enforceQuota() }
    }

    private func close(_ report: StallReport) {
        open.remove(report.id)
        OpenReports.remove(report.id)
    }

    /// Makes room for a new report; lists the directory only if there may be none, or after many new ones.
    private func enforceQuota() {
        (room.reports, unlisted) = (room.reports - 1, unlisted - 1)
        guard room.reports < 0 || room.bytes < 0 || unlisted < 0 else { return }
        room = directory.enforce(quota)
        unlisted = max(quota.reports / 100, Self.leastUnlisted) / room.monitors
        if room.removed > 0 { counts.add { $0.reportsRemoved += room.removed } }
    }
}

/// The ids of reports that this process's monitors are writing; their files must not be removed or recovered.
enum OpenReports {
    private static let ids = ProcessMutex<Set<String>>([])

    static func insert(_ id: String) { ids.withLock { _ = $0.insert(id) } }
    static func remove(_ id: String) { ids.withLock { _ = $0.remove(id) } }
    static func contains(_ id: String) -> Bool { ids.withLock { $0.contains(id) } }
}
