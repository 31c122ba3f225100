import Glibc
import LinuxSupport
import StallReports

/// A report directory whose finished reports are sent in order.
final class ShippedDirectory {
    /// The most bytes of records in a request, and in memory: collectors accept 4 MiB and more.
    private static let maximumBytes = 2 << 20

    let path: String
    private let folder: String
    private let common: OTLPAttributes
    private let log: (String) -> Void
    private var watch: DirectoryWatch
    private var queue = ShipQueue()
    /// The reports that are done; `nil` while the directory is gone.
    private var checkpoint: ShipCheckpoint?
    /// The reports that the collector did not take.
    private var aside: SetAsideFolder
    /// The directory that the two were opened for, as ``FileStatus/identity``.
    private var identity: [UInt64] = []
    /// Reports that have been read and not delivered.
    private var ready: [ShippedReport] = []
    private var ongoing: [String: ReportSummary] = [:]
    private(set) var totals = ShipTotals()

    /// `state` is the folder for the checkpoint and the reports kept aside, by default one in the directory.
    ///
    /// `common` are attributes of every resource; `log` receives a sentence about what goes wrong.
    init(path: String, state: String?, common: OTLPAttributes, log: @escaping (String) -> Void) throws(CommandFailure) {
        self.path = path
        self.common = common
        self.log = log
        folder = state ?? path + "/.stallwatch-ship"
        watch = try DirectoryWatch(path: path)
        aside = SetAsideFolder(path: folder + "/rejected")
        try open(FileStatus(path: path)?.identity ?? [])
    }

    /// Opens the files, also after the directory was replaced by another one.
    private func open(_ identity: [UInt64]) throws(CommandFailure) {
        // The lock of the old one goes first.
        checkpoint = nil
        checkpoint = try ShipCheckpoint(folder: folder)
        aside = SetAsideFolder(path: folder + "/rejected")
        self.identity = identity
    }

    var waiting: Int { ready.count + queue.count }

    /// Looks for new and changed reports; `now` is the monotonic clock.
    func poll(now: UInt64) {
        guard isPresent(), let checkpoint else { return }
        watch.rescanIfDue(now: now)
        var found = watch.changes().map(fileName)
        // The newest stalls of their kind are removed as others come.
        ongoing = ongoing.filter { watch.contains($0.key) }
        found += ongoing.filter { $0.value.processIsGone }.keys.sorted()
        let held = Set(ready.map(\.name))
        queue.add(found) { checkpoint.done.contains($0) || held.contains($0) }
        checkpoint.compact { watch.contains($0) }
    }

    /// Whether the directory is there; opens the memory again after it was gone or replaced.
    private func isPresent() -> Bool {
        guard let status = FileStatus(path: path), status.isDirectory else {
            if checkpoint != nil { log("\(path) is gone. Waiting for it to come back.") }
            checkpoint = nil
            return false
        }
        if checkpoint != nil, status.identity == identity { return true }
        guard (try? open(status.identity)) != nil else { return false }
        log("\(path) is back.")
        return true
    }

    /// The next reports as one request; `nil` if no finished report waits.
    func nextRequest() -> LogsRequest? {
        while ready.count < queue.limit, ready.reduce(0, { $0 + $1.record.count }) < Self.maximumBytes,
            let name = queue.next
        {
            queue.removeNext()
            ongoing[name] = nil
            switch ShippedReport.read(name, in: path, common: common) {
            case .ready(let report): ready.append(report)
            case .ongoing(let summary): ongoing[name] = summary
            case .gone: totals.gone += 1
            case .unreadable(let reason): finish([name], aside: "it cannot be read: \(reason)")
            }
        }
        guard !ready.isEmpty else { return nil }
        var request = LogsRequest()
        for report in ready.prefix(queue.limit) where request.size < Self.maximumBytes {
            request.add(report.record, from: report.resource)
        }
        return request
    }

    /// Applies an outcome to the first `count` reports of the last request.
    func apply(_ outcome: ShipmentOutcome, count: Int) {
        switch outcome {
        case .delivered:
            finish(takeReady(count), aside: nil)
            queue.grow()
        case .setAside(let reason): finish(takeReady(count), aside: reason)
        case .split: queue.shrink(from: count)
        case .retry: break
        }
    }

    private func takeReady(_ count: Int) -> [String] {
        let names = ready.prefix(count).map(\.name)
        ready.removeFirst(names.count)
        return names
    }

    private func finish(_ names: [String], aside reason: String?) {
        if let reason {
            log("\(counted(names.count, "report", "reports")) kept aside in \(aside.path): \(reason)")
            for name in names {
                guard let error = aside.add(name, from: path, reason: reason),
                    FileStatus(path: path + "/" + name) != nil
                else { continue }
                log("\(name) could not be kept aside: \(String(cString: strerror(error)))")
            }
            totals.setAside += names.count
        } else {
            totals.sent += names.count
        }
        if let error = checkpoint?.add(names) {
            log("\(folder) cannot be written, so a restart repeats reports: \(String(cString: strerror(error)))")
        }
    }
}

struct ShippedReport: Sendable {
    var name: String
    var resource: OTLPAttributes
    var record: [UInt8]

    enum Reading {
        case ready(ShippedReport)
        /// The stall goes on, or its final report has not been written.
        case ongoing(ReportSummary)
        case gone
        case unreadable(reason: String)
    }

    /// Reads a report's file; `common` are attributes of every resource.
    ///
    /// An ongoing stall whose process is gone counts as finished: no monitor may ever start there again and say so.
    static func read(_ name: String, in directory: String, common: OTLPAttributes) -> Reading {
        let path = directory + "/" + name
        let report: StallReport
        do throws(UnreadableReport) {
            report = try StallReport(json: try FileReader.contents(of: path))
        } catch {
            return FileStatus(path: path) == nil ? .gone : .unreadable(reason: error.reason)
        }
        var isAbandoned = false
        // The next stall of its kind replaces the newest one, and counts it.
        if report.state == .ongoing || name.hasSuffix(StallReport.newestSuffix) {
            let summary = ReportSummary(report)
            isAbandoned = summary.processIsGone
            guard isAbandoned else { return .ongoing(summary) }
        }
        return .ready(
            ShippedReport(
                name: name, resource: OTLPAttributes(of: report, common: common),
                record: LogRecord(report, isAbandoned: isAbandoned).bytes()
            ))
    }
}

/// The reports of a directory that have not been sent, in order, and how many to send at a time.
///
/// Reports are known by their file names, which begin with the time of the stall.
struct ShipQueue: Sendable, Equatable {
    static let maximumBatch = 256

    /// The names of reports whose files have not been read, or are to be read again.
    private var names: ArraySlice<String> = []
    private var waiting: Set<String> = []
    private(set) var limit = Self.maximumBatch

    var count: Int { names.count }
    var next: String? { names.first }

    /// Adds new and changed reports, except those that are done or already wait.
    mutating func add(_ found: [String], done: (String) -> Bool) {
        for name in found where !done(name) && waiting.insert(name).inserted { names.append(name) }
    }

    mutating func removeNext() {
        if let name = names.popFirst() { waiting.remove(name) }
    }

    /// After a request was too much for the collector, or had a report that it does not take.
    mutating func shrink(from sent: Int) { limit = max(min(sent, limit) / 2, 1) }

    mutating func grow() { limit = min(limit * 2, Self.maximumBatch) }
}

/// The folder with reports that the collector did not take, each beside a file with the reason.
///
/// It is a report directory itself, so `stallwatch ship` can send it once the reason is gone.
struct SetAsideFolder {
    /// The most reports in the folder; the oldest ones are removed for newer ones.
    static let maximumReports = 10_000
    private static let reasonSuffix = ".reason"

    let path: String
    private var count: Int

    init(path: String) {
        self.path = path
        count = Self.reports(in: path).count
    }

    /// Keeps a report as a link, which takes no room while the original exists, or a copy; returns the error, if any.
    mutating func add(_ name: String, from directory: String, reason: String) -> Int32? {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { return errno }
        let target = path + "/" + name
        if link(directory + "/" + name, target) != 0, errno != EEXIST {
            let failure = errno
            guard let bytes = AtomicFile.read(directory + "/" + name, limit: StallReport.maximumBytes) else {
                return failure
            }
            do throws(SystemError) {
                try AtomicFile.replace(target, with: bytes)
            } catch {
                return error.errno ?? EIO
            }
        }
        let time = Timestamp(wallClockNanoseconds: wallClockNow())
        // The report is kept; without its reason it can still be sent again.
        _ = try? AtomicFile.replace(target + Self.reasonSuffix, with: Array("\(time) \(reason)\n".utf8))
        count += 1
        if count > Self.maximumReports { removeOldest() }
        return nil
    }

    /// Removes a tenth, so that the folder is not listed for each new report.
    private mutating func removeOldest() {
        let names = Self.reports(in: path).sorted()
        let surplus = max(names.count - Self.maximumReports * 9 / 10, 0)
        for name in names.prefix(surplus) {
            unlink(path + "/" + name)
            unlink(path + "/" + name + Self.reasonSuffix)
        }
        count = names.count - surplus
    }

    private static func reports(in path: String) -> [String] {
        (directoryEntries(path) ?? []).map(\.name).filter(ReportFiles.isReport)
    }
}
