import ArgumentParser
import StallReports
import TextOutput

/// Writes stacks in the formats of other tools.
struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write all stacks for another tool, weighted by stalled time.",
        discussion: """
            Formats:
              collapsed    for flamegraph.pl, inferno, gprof2dot: a line per stack
              speedscope   for speedscope.app: a profile for each loop
              pprof        for pprof: labels have process, loop, kind and cause
              firefox      for profiler.firefox.com: a thread for each loop
              perf         for readers of perf script's output
              perfetto     for ui.perfetto.dev: a track for each loop, with its turns
              otlp-profiles
                           OpenTelemetry's profiles in nanoseconds, with links
                           to spans (v1development, opentelemetry-proto 1.10)

            Examples:
              stallwatch export stalls --format speedscope -o stalls.speedscope.json
              stallwatch export stalls --format pprof -o stalls.pb.gz
              stallwatch export stalls --format collapsed | flamegraph.pl > stalls.svg
            """
    )

    @OptionGroup var selection: ReportSelection

    @Option(
        help: ArgumentHelp(
            "collapsed, speedscope, pprof, firefox, perf, perfetto or otlp-profiles.", valueName: "format"))
    var format: ExportFormat

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file to write, or - for standard output (default).", valueName: "file"))
    var output = "-"

    func run() throws {
        let destination = try Destination(output, isBinary: format.isBinary)
        var profile = StallProfile()
        try selection.read().forEach { report, _ in profile.add(report) }
        guard !profile.stalls.isEmpty else {
            throw CommandFailure(.noInput, "No report matches, so there is nothing to export.")
        }
        try destination.write(format.data(profile))
    }
}

extension ExportFormat: ExpressibleByArgument {}

/// A format that another tool reads.
enum ExportFormat: String, CaseIterable {
    case collapsed, speedscope, pprof, firefox, perf, perfetto
    case otlpProfiles = "otlp-profiles"

    /// Whether the format is binary.
    var isBinary: Bool { [.pprof, .perfetto, .otlpProfiles].contains(self) }

    /// The file's contents.
    func data(_ profile: StallProfile) -> [UInt8] {
        switch self {
        case .collapsed: CollapsedStacks.data(profile)
        case .speedscope: SpeedscopeProfile.data(profile, exporter: "stallwatch@\(StallWatchVersion.current)")
        case .pprof: PprofProfile.data(profile, exporter: "stallwatch \(StallWatchVersion.current)")
        case .firefox: PlainJSON.escaped(FirefoxProfile.data(profile, product: "StallWatch"))
        case .perf: PerfScript.data(profile)
        case .perfetto: PerfettoTrace.data(profile)
        case .otlpProfiles: OTLPProfiles.data(profile)
        }
    }
}
