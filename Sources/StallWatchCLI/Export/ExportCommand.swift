import ArgumentParser
import StallReports
import TextOutput

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write all stacks for another tool, weighted by stalled time.",
        discussion: """
            Formats:
              collapsed    for speedscope.app, flamegraph.pl, inferno, gprof2dot:
                           a line per stack
              pprof        for pprof and speedscope.app: labels have process, loop,
                           kind and cause
              firefox      for profiler.firefox.com: a thread for each loop, with
                           its turns

            Examples:
              stallwatch export stalls --format collapsed -o stalls.txt
              stallwatch export stalls --format pprof -o stalls.pb.gz
              stallwatch export stalls --format collapsed | flamegraph.pl > stalls.svg
            """
    )

    @OptionGroup var selection: ReportSelection

    @Option(help: ArgumentHelp("collapsed, pprof or firefox.", valueName: "format"))
    var format: ExportFormat

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file to write, or - for standard output (default).", valueName: "file"))
    var output = "-"

    func run() throws {
        let destination = try Destination(output, isBinary: format.isBinary)
        var profile = StallProfile()
        profile.keepsTurns = format == .firefox
        try selection.read().forEach(.whole) { report, _ in profile.add(report) }
        let stalls = profile.stalls.reduce(profile.stalls.count) { $0 &+ $1.repeats }
        try destination.write(format.data(profile), of: counted(reports: profile.stalls.count, ofStalls: stalls))
    }
}

enum ExportFormat: String, CaseIterable, ExpressibleByArgument {
    case collapsed, pprof, firefox

    var isBinary: Bool { self == .pprof }

    func data(_ profile: StallProfile) -> [UInt8] {
        switch self {
        case .collapsed: CollapsedStacks.data(profile)
        case .pprof: PprofProfile.data(profile)
        case .firefox: FirefoxProfile.data(profile)
        }
    }
}

/// Collapsed stacks, the input of flamegraph.pl, inferno and speedscope: a line for each, sorted, as in
/// `loop;outermost;innermost 1234`, in whole microseconds.
enum CollapsedStacks {
    static func data(_ profile: StallProfile) -> [UInt8] {
        var weights: [Stack: Int] = [:]
        for stall in profile.stalls {
            let loop = profile.loops[stall.loop]
            for share in stall.allShares {
                let stack = Stack(loop: "\(loop.process.name) \(loop.label)", node: share.node)
                weights[stack, default: 0] += share.microseconds
            }
        }
        // The format has functions without lines, so frames of one function at different lines are merged.
        var lines: [String: Int] = [:]
        for (stack, microseconds) in weights {
            let names = profile.table.path(of: stack.node).reversed().map { profile.table.function(ofFrame: $0).name }
            lines[([stack.loop] + names).map(word).joined(separator: ";"), default: 0] += microseconds
        }
        return lines.sorted { $0.key < $1.key }.reduce(into: []) {
            $0 += "\($1.key.withoutWorkflowCommands) \($1.value)\n".utf8
        }
    }

    private struct Stack: Hashable {
        var loop: String
        var node: Int
    }

    /// A name in one line without semicolons, which the format cannot escape.
    private static func word(_ name: String) -> String {
        let line = name.split(whereSeparator: \.isNewline).joined(separator: " ").printable
        return String(String.UnicodeScalarView(line.unicodeScalars.map { $0 == ";" ? ":" : $0 }))
    }
}
