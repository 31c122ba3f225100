import LinuxSupport
import TextOutput
import Glibc

/// A report directory whose finished reports are sent in order.
final class ShippedDirectory {
    /// The most bytes of records in a request, and in memory: collectors accept 4 MiB and more.
    private static let maximumBytes = 2 << 20
    /// The time between two looks at every file, in nanoseconds: a file system's clock may hide a change for longer than
    /// a tick, or be set back.
    private static let rescanPeriod: UInt64 = 60_000_000_000
    /// The folder in a report directory for what shipping has to remember.
    static let stateName = ".stallwatch-ship"

    let path: String
    private let statePath: String
    private let common: OTLPAttributes
    private let log: (String) -> Void
    private var watch: DirectoryWatch
    private var queue = ShipQueue()
    /// `nil` while the directory is gone.
    private var checkpoint: ShipCheckpoint?
    private var identity: [UInt64]
    private var aside: SetAsideFolder
    /// Reports that have been read and not delivered.
    private var ready: [ShippedReport] = []
    private var readyBytes = 0
    private var ongoing: [String: ReportSummary] = [:]
    private var rescanAt: UInt64 = 0
    private(set) var totals = ShipTotals()

    /// - Parameters:
    ///   - path: The report directory.
    ///   - state: The folder for the checkpoint and the reports that are kept aside; `nil` for one in the directory.
    ///   - common: Attributes of every resource.
    ///   - log: Receives a sentence about what goes wrong.
    /// - Throws: When the directory cannot be read, or the state not be written.
    init(
        path: String, state: String?, common: OTLPAttributes, log: @escaping (String) -> Void
    ) throws(CommandFailure) {
        self.path = path
        self.common = common
        self.log = log
        watch = try DirectoryWatch(path: path)
        statePath = state ?? path + "/" + Self.stateName
        identity = FileStatus(path: path)?.identity ?? []
        checkpoint = try ShipCheckpoint(folder: statePath)
        aside = SetAsideFolder(path: statePath + "/rejected")
    }

    /// The reports that are known and not delivered.
    var waiting: Int { ready.count + queue.count }

    /// Looks for new and changed reports; `now` is the monotonic clock.
    func poll(now: UInt64) {
        guard isPresent(), let checkpoint else { return }
        if now >= rescanAt {
            watch.rescan()
            rescanAt = now + Self.rescanPeriod
        }
        var found = watch.changes().map(fileName)
        found += ongoing.filter { $0.value.processIsGone }.keys.sorted()
        let held = Set(ready.map(\.name))
        queue.add(found) { checkpoint.done.contains($0) || held.contains($0) }
        checkpoint.compact { watch.contains($0) }
    }

    /// Whether the directory is there.
    ///
    /// Opens the checkpoint again after it was gone or replaced.
    private func isPresent() -> Bool {
        guard let status = FileStatus(path: path), status.isDirectory else {
            if checkpoint != nil { log("\(path) is gone. Waiting for it to come back.") }
            checkpoint = nil
            return false
        }
        if checkpoint != nil, status.identity == identity { return true }
        checkpoint = nil
        do throws(CommandFailure) {
            checkpoint = try ShipCheckpoint(folder: statePath)
            aside = SetAsideFolder(path: statePath + "/rejected")
            identity = status.identity
            log("\(path) is back.")
            return true
        } catch {
            return false
        }
    }

    /// The next reports as one request; `nil` if no finished report waits.
    func nextRequest() -> LogsRequest? {
        while ready.count < queue.limit, readyBytes < Self.maximumBytes, let name = queue.next {
            queue.removeNext()
            ongoing[name] = nil
            switch ShippedReport.read(name, in: path, common: common) {
            case .ready(let report):
                ready.append(report)
                readyBytes += report.record.count
            case .ongoing(let summary): ongoing[name] = summary
            case .gone: totals.gone += 1
            case .unreadable(let reason): finish([name], aside: "it cannot be read: \(reason)")
            }
        }
        guard !ready.isEmpty else { return nil }
        var request = LogsRequest()
        for report in ready.prefix(queue.limit) {
            request.add(report.record, from: report.resource)
            if request.size >= Self.maximumBytes { break }
        }
        return request
    }

    /// Applies an outcome to the first `count` reports of the last request.
    func apply(_ outcome: ShipmentOutcome, count: Int) {
        switch outcome {
        case .delivered:
            finish(removeReady(count), aside: nil)
            queue.grow()
        case .setAside(let reason): finish(removeReady(count), aside: reason)
        case .split: queue.shrink(from: count)
        case .retry: break
        }
    }

    private func removeReady(_ count: Int) -> [String] {
        let names = ready.prefix(count).map(\.name)
        readyBytes -= ready.prefix(count).reduce(0) { $0 + $1.record.count }
        ready.removeFirst(names.count)
        return names
    }

    private func finish(_ names: [String], aside reason: String?) {
        if let reason {
            log("\(counted(names.count, "report", "reports")) kept aside in \(aside.path): \(reason.printable)")
            for name in names {
                if let error = aside.add(name, from: path, reason: reason), FileStatus(path: path + "/" + name) != nil {
                    log("\(name.printable) could not be kept aside: \(String(cString: strerror(error)))")
                }
            }
            totals.setAside += names.count
        } else {
            totals.sent += names.count
        }
        if let error = checkpoint?.add(names) {
            log("\(statePath) cannot be written, so a restart repeats reports: \(String(cString: strerror(error)))")
        }
    }
}
