import ArgumentParser
import Foundation
import Glibc
import LinuxSupport
import StallReports
import TextOutput

struct ShipCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ship",
        abstract: "Follow report directories: send each finished report to an OpenTelemetry collector.",
        usage: "stallwatch ship <directory> ... [<options>]",
        discussion: """
            Sends a log record with the event name stallwatch.stall over OTLP/HTTP for each report, at least once, in order. \
            The attribute log.record.uid is the report's id: records with the same one are duplicates. What was sent is \
            remembered in .stallwatch-ship in the report directory. While the collector is away, reports wait where they \
            are. Reports that the collector does not take are kept in .stallwatch-ship/rejected, each with the reason; ship \
            that directory to send them again. A signal ends the command after a last try.

            Variables: OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT, _COMPRESSION, _CERTIFICATE, _CLIENT_CERTIFICATE and \
            _CLIENT_KEY, the same with _LOGS or _METRICS after OTLP, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.

            Examples:
              stallwatch ship stalls --otlp http://127.0.0.1:4318
              stallwatch ship notes/stalls mail/stalls --state /var/lib/stallwatch
              stallwatch ship stalls --otlp https://example.com --header api-key=1 --once
            """
    )

    @Argument(help: ArgumentHelp("The directories that monitors write their reports to.", valueName: "directory"))
    var directories: [String]

    @Option(
        help: ArgumentHelp(
            "The collector's URL, to which /v1/logs or /v1/metrics is added. Default: OTEL_EXPORTER_OTLP_ENDPOINT.",
            valueName: "url"))
    var otlp: String?

    @Option(each: "A header of each request. Can be repeated.", valueName: "name=value")
    var header: [String] = []

    @Option(
        help: ArgumentHelp(
            "The folder for what was sent and what is kept aside, for report directories that cannot be written.",
            valueName: "folder"))
    var state: String?

    @Option(
        each: "A statistics file, which is sent to /v1/metrics whenever it changes. Can be repeated.",
        valueName: "file")
    var statistics: [String] = []

    @Flag(help: "End when all finished reports are sent (exit status 75 if the collector does not take them).")
    var once = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How long to try again when the collector refuses everything, as with status 401, 403 or 404, before reports are kept aside.",
            valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var refusedFor = DurationArgument(milliseconds: 900_000)

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How long to send what is left after a signal.", valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var flush = DurationArgument(milliseconds: 10_000)

    func run() throws {
        let stop = StopRequest.bySignal()
        let environment = ProcessInfo.processInfo.environment
        let settings = try OTLPSettings(.logs, url: otlp, headers: header, environment: environment)
        let connection = try OTLPConnection(settings)
        let metrics = try OTLPConnection(OTLPSettings(.metrics, url: otlp, headers: header, environment: environment))
        let common = OTLPSettings.resourceAttributes(environment)
        let log = { (sentence: String) in StandardError.write(sentence.printable + "\n") }
        let opened = try directories.map { path in
            let state = try self.state.map { folder in try Self.stateFolder(for: path, in: folder) }
            return try ShippedDirectory(path: path, state: state, common: common, log: log)
        }
        let shipper = Shipper(
            opened, statistics: statistics.map { ShippedStatistics(path: $0, common: common, log: log) },
            limits: .init(
                refusal: .milliseconds(refusedFor.milliseconds), flush: .milliseconds(flush.milliseconds), isOnce: once),
            clock: ShipClock(
                now: monotonicNow, wallTime: { Timestamp(wallClockNanoseconds: wallClockNow()) },
                isStopRequested: { stop.isSet }, wait: stop.wait(until:)),
            log: log
        ) { signal, message, timeout in
            (signal == .logs ? connection : metrics).post(message, timeoutMilliseconds: timeout)
        }
        shipper.run()
        let totals = shipper.totals
        var sentence = "\(counted(totals.sent, "report", "reports")) sent"
        if totals.setAside > 0 { sentence += ", \(totals.setAside) kept aside" }
        if totals.gone > 0 { sentence += ", \(totals.gone) removed before they were sent" }
        if shipper.waiting > 0 { sentence += ", \(shipper.waiting) left for the next start" }
        log(sentence + ".")
        guard !once || (shipper.waiting == 0 && !shipper.isFailing) else {
            throw CommandFailure(.tryAgain, "The collector at \(settings.url) does not take reports.")
        }
    }

    /// The folder for what was sent from one report directory, inside `folder`, which is created if it is missing.
    ///
    /// Named after the directory and a checksum of its full path, so that two directories of the same name have their own.
    private static func stateFolder(for directory: String, in folder: String) throws(CommandFailure) -> String {
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw CommandFailure(writing: folder, errno: errno) }
        guard let path = resolvedPath(directory) else { throw CommandFailure(reading: directory, errno: errno) }
        var checksum = CRC32()
        checksum.add(Array(path.utf8))
        return "\(folder)/\(fileName(path))-\(String(checksum.value, radix: 16))"
    }
}

struct ShipTotals: Sendable, Equatable {
    /// Reports that a collector has.
    var sent = 0
    var setAside = 0
    /// Reports whose files were removed before they were read.
    var gone = 0

    static func + (left: ShipTotals, right: ShipTotals) -> ShipTotals {
        ShipTotals(
            sent: left.sent + right.sent, setAside: left.setAside + right.setAside, gone: left.gone + right.gone)
    }
}
