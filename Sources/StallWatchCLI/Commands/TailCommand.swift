import StallReports
import LinuxSupport
import ArgumentParser
import Glibc
import Synchronization

/// Stalls as they happen.
struct TailCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Follow a report directory: new stalls, and those that still last.",
        discussion: """
            A stall is shown as soon as its report is there, which is while it lasts, and again when it is over. On a terminal the \
            last line counts how long those take that still last. Ends with Ctrl-C.

            Examples:
              stallwatch tail stalls
              stallwatch tail stalls --loop main --min 1s
              stallwatch tail stalls --json | jq .report.culprit
            """
    )

    @Argument(help: ArgumentHelp("The directory that a monitor writes its reports to.", valueName: "directory"))
    var directory: String

    @OptionGroup(title: "Which reports") var filters: FilterOptions

    @Flag(help: "Show the reports that are there already, too.")
    var all = false

    @Flag(help: "Print JSON, one line an event.")
    var json = false

    func run() throws {
        let isEnding = Ending()
        Interruption.handle { isEnding.set() }
        var follower = FollowedDirectory(watch: try DirectoryWatch(path: directory), filter: filters.filter)
        let printer = TailPrinter(terminal: .standardOutput, isJSON: json)
        if !all { try follower.skipEnded(printer) }
        while !isEnding.isSet, !readerIsGone() {
            try follower.look(printer)
            try printer.showOngoing(follower.ongoing)
            usleep(Self.period)
        }
        try printer.clear()
    }

    /// Microseconds between two looks: 0.2 s, about what a person takes for at once.
    private static let period: UInt32 = 200_000

    /// Whether nobody reads standard output any more: nothing may be written for hours that would show it.
    private func readerIsGone() -> Bool {
        var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&output, 1, 0) > 0 && output.revents & Int16(POLLERR | POLLNVAL) != 0
    }

    /// Whether the command has been told to end.
    private final class Ending: Sendable {
        private let flag = Mutex(false)
        func set() { flag.withLock { $0 = true } }
        var isSet: Bool { flag.withLock { $0 } }
    }
}

/// A directory with what is known of its stalls.
struct FollowedDirectory {
    private var watch: DirectoryWatch
    private let filter: ReportFilter
    private var follower = StallFollower()

    init(watch: DirectoryWatch, filter: ReportFilter) {
        self.watch = watch
        self.filter = filter
    }

    /// The stalls that last, oldest first.
    var ongoing: [ReportSummary] { follower.ongoing.values.sorted { $0.startedAt < $1.startedAt } }

    /// Takes what is there already: only stalls that last are told.
    mutating func skipEnded(_ printer: TailPrinter) throws {
        for path in watch.changes() {
            guard let report = read(path) else { continue }
            if report.state == .ongoing { try take(report, printer) } else { follower.skip(report) }
        }
    }

    /// Tells what has happened since the last look.
    mutating func look(_ printer: TailPrinter) throws {
        for path in watch.changes() {
            if let report = read(path) { try take(report, printer) }
        }
        for report in follower.dead(isGone: \.processIsGone) { try printer.tell(.died, report) }
    }

    private mutating func take(_ report: ReportSummary, _ printer: TailPrinter) throws {
        guard filter.matches(report), let event = follower.take(report) else { return }
        try printer.tell(event, report)
    }

    /// A report that can be read; what cannot is named.
    private func read(_ path: String) -> ReportSummary? {
        do throws(UnreadableReport) {
            return try ReportSummary(json: try FileReader.contents(of: path), functions: filter.needsFunctions)
        } catch {
            // Between the look and now it may have been removed to stay inside the quota.
            guard FileStatus(path: path) != nil else { return nil }
            StandardError.write("Skipped \(path.printable): \(error.reason.printable)\n")
            return nil
        }
    }
}

extension ReportSummary {
    /// Whether its process ran here, since this boot, and runs no more.
    ///
    /// The name of the host tells most containers apart, whose processes have other ids here.
    fileprivate var processIsGone: Bool {
        guard let startTicks = process.startTicks, let bootID = process.bootID, bootID == Self.bootID,
            process.hostname == Self.hostname
        else { return false }
        return !ProcessIdentity(pid: process.pid, startTicks: startTicks, bootID: bootID).isAlive
    }

    private static let bootID = firstLine(of: "/proc/sys/kernel/random/boot_id")
    private static let hostname = firstLine(of: "/proc/sys/kernel/hostname")

    private static func firstLine(of path: String) -> String? {
        let bytes = try? FileReader(path: path).read(256)
        return bytes.map { String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self) }
    }
}
