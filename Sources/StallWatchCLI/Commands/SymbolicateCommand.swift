import StallSymbols
import StallReports
import LinuxSupport
import ArgumentParser
import Glibc

/// Names and lines after the fact.
struct SymbolicateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "symbolicate",
        abstract: "Fill in functions, files and lines from debug files, later and elsewhere.",
        discussion: """
            Debug files are found by build ID, so they may be on another machine and the program stripped. Reports go to standard \
            output, one a line if there are several, unless --output or --in-place says otherwise. Images whose names or \
            lines could not be found are listed, with the reason. Nothing is asked of the network without --debuginfod.

            Examples:
              stallwatch symbolicate stalls --in-place
              stallwatch symbolicate stalls --output named --debug-path build/symbols
              stallwatch symbolicate report.json --debuginfod https://debuginfod.debian.net
            """
    )

    @OptionGroup var selection: ReportSelection

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A directory with debug files or unstripped programs, laid out as /usr/lib/debug is or not. May be given several times.",
            valueName: "dir")
    )
    var debugPath: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A debuginfod server to ask for what no directory has. May be given several times.", valueName: "url")
    )
    var debuginfod: [String] = []

    @Option(
        help: ArgumentHelp("How long one report may take, servers included. Default: 60s.", valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var timeLimit = DurationArgument(milliseconds: 60_000)

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Write the reports to this directory; made if it is missing.", valueName: "dir"))
    var output: String?

    @Flag(help: "Replace the reports' files.")
    var inPlace = false

    @Flag(help: "Print the list of images as JSON. Needs --output or --in-place.")
    var json = false

    func validate() throws {
        if output != nil, inPlace { throw ValidationError("--output and --in-place exclude each other.") }
        if output?.isEmpty == true { throw ValidationError("The value '' of --output is empty: name a directory.") }
        if json, output == nil, !inPlace {
            throw ValidationError("Standard output has the reports: --json needs --output or --in-place.")
        }
        if timeLimit.milliseconds == 0 { throw ValidationError("The time limit is nothing: nothing can be found.") }
        for url in debuginfod where !url.hasPrefix("http://") && !url.hasPrefix("https://") {
            throw ValidationError("'\(url)' is no server: give its address, such as https://debuginfod.debian.net.")
        }
        for path in debugPath where FileStatus(path: path)?.isDirectory != true {
            throw ValidationError("'\(path)' of --debug-path is no directory.")
        }
    }

    func run() throws {
        // The library's client takes the servers from there (debuginfod-find(1)).
        if !debuginfod.isEmpty { setenv("DEBUGINFOD_URLS", debuginfod.joined(separator: " "), 1) }
        let symbolication = OfflineSymbolication(
            StallReport.DebugSources(
                directories: debugPath, usesDebuginfod: !debuginfod.isEmpty,
                timeLimit: .milliseconds(min(timeLimit.milliseconds, 1e12))
            )
        )
        let reports = try selection.read()
        if inPlace, let file = reports.files.files.first(where: { $0.kind != .report }) {
            throw CommandFailure(
                .cannotCreate,
                "\(ReportOrigin(path: file.path)) is not a file of one report: use --output instead of --in-place."
            )
        }
        if let output, mkdir(output, 0o700) != 0, errno != EEXIST {
            throw CommandFailure(writing: output, errno: errno)
        }
        var missing = MissingImages()
        var printed = PrintedReports()
        try reports.forEach { report, origin in
            let named = symbolication.symbolicate(report)
            missing.add(named)
            if let output {
                try write(named, to: output + "/" + named.fileName)
            } else if inPlace {
                if named != report { try write(named, to: origin.path) }
            } else {
                try printed.add(named)
            }
        }
        try printed.finish()
        if json {
            try StandardOutput.write(JSONOutput.bytes(missing))
        } else if output != nil || inPlace {
            try StandardOutput.write(missing.text(for: .standardOutput))
        } else {
            StandardError.write(missing.text(for: Terminal()))
        }
    }

    private func write(_ report: StallReport, to path: String) throws {
        // For their owner only, as the monitor makes them: reports tell of paths and functions.
        try OutputFile(path: path, permissions: 0o600).write(report.jsonData())
    }
}

/// Prints reports: a single one as the library writes it, several as one a line.
private struct PrintedReports {
    private var first: StallReport?
    private var count = 0

    mutating func add(_ report: StallReport) throws {
        count += 1
        if count == 1 {
            first = report
            return
        }
        if let first { try StandardOutput.write(JSONOutput.bytes(first, isIndented: false)) }
        first = nil
        try StandardOutput.write(JSONOutput.bytes(report, isIndented: false))
    }

    func finish() throws {
        if let first { try StandardOutput.write(first.jsonData()) }
    }
}
