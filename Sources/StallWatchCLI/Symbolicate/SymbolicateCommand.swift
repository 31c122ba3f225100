import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import StallSymbols
import TextOutput

struct SymbolicateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "symbolicate",
        abstract: "Fill in functions, files and lines from debug files.",
        discussion: """
            Finds debug files by build ID, so the program may be stripped and from another machine. Reports go to standard \
            output, one per line if there are several, unless --output or --in-place is given. Images without names or lines \
            are listed with the reason. Uses the network only with --debuginfod.

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
            "A directory with debug files or unstripped programs, in the layout of /usr/lib/debug or any other. Can be repeated.",
            valueName: "dir")
    )
    var debugPath: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A debuginfod server for files that no directory has. Can be repeated.", valueName: "url")
    )
    var debuginfod: [String] = []

    @Option(
        help: ArgumentHelp("The time limit for one report, including servers. Default: 60s.", valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var timeLimit = DurationArgument(milliseconds: 60_000)

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Write the reports to this directory; created if missing.", valueName: "dir"))
    var output: String?

    @Flag(help: "Replace the reports' files.")
    var inPlace = false

    @OptionGroup var terminalOptions: TerminalOptions

    @Flag(help: "Print the list of images as JSON. Needs --output or --in-place.")
    var json = false

    func validate() throws {
        if output != nil, inPlace { throw ValidationError("Give either --output or --in-place, not both.") }
        if output?.isEmpty == true { throw ValidationError("--output is empty: name a directory.") }
        if json, output == nil, !inPlace {
            throw ValidationError("--json needs --output or --in-place, because the reports go to standard output.")
        }
        if timeLimit.milliseconds == 0 { throw ValidationError("--time-limit has to be longer than 0.") }
        for url in debuginfod where !url.hasPrefix("http://") && !url.hasPrefix("https://") {
            throw ValidationError(
                "--debuginfod: '\(url)' is not a URL. Give one such as https://debuginfod.debian.net.")
        }
        for path in debugPath where FileStatus(path: path)?.isDirectory != true {
            throw ValidationError("--debug-path: '\(path)' is not a directory.")
        }
    }

    func run() throws {
        // The library's client reads the servers from there (debuginfod-find(1)).
        if !debuginfod.isEmpty { setenv("DEBUGINFOD_URLS", debuginfod.joined(separator: " "), 1) }
        let symbolication = OfflineSymbolication(
            directories: debugPath, usesDebuginfod: !debuginfod.isEmpty,
            timeLimit: .milliseconds(min(timeLimit.milliseconds, 1e12)))
        let reports = try selection.read()
        if inPlace, let file = reports.files.files.first(where: { $0.layout != .report }) {
            throw CommandFailure(
                .cannotCreate,
                "\(ReportOrigin(path: file.path)) may hold several reports: use --output instead of --in-place."
            )
        }
        if let output, mkdir(pathBytes(output), 0o700) != 0, errno != EEXIST {
            throw CommandFailure(writing: output, errno: errno)
        }
        var missing = MissingImages()
        var printed = PrintedReports()
        try reports.forEach(.whole) { report, origin in
            let named = symbolication.symbolicate(report)
            missing.add(named)
            if let output {
                try write(named, to: output + "/" + named.fileName)
            } else if inPlace {
                guard named != report else { return }
                // Names take seconds. A report that a monitor has replaced meanwhile is newer than this one.
                guard let now = try? StallReport(json: FileReader.contents(of: origin.path)), now == report else {
                    return StandardError.write("Left \(origin.path.printable) as it is: it has changed meanwhile.\n")
                }
                try write(named, to: origin.path)
            } else {
                try printed.add(named)
            }
        }
        try printed.finish()
        guard output != nil || inPlace else { return StandardError.write(missing.text(for: Terminal())) }
        if json { return try StandardOutput.write(JSONOutput.bytes(missing)) }
        try StandardOutput.write(missing.text(for: terminalOptions.terminal))
    }

    private func write(_ report: StallReport, to path: String) throws {
        // For the owner only, as the monitor does: reports contain paths and function names.
        try OutputFile(path: path, permissions: 0o600).write(report.jsonData())
    }
}

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
        if let first { try StandardOutput.write(PlainJSON.escaped(first.jsonData())) }
    }
}

struct MissingImages: Encodable {
    private(set) var reports = 0
    private(set) var frames = 0
    private(set) var named = 0
    /// Sorted by missing names, then by missing lines.
    private(set) var images: [Missing] = []

    struct Missing: Encodable, Sendable, Equatable {
        let image: String
        let path: String
        let buildID: String?
        var unnamedFrames = 0
        var framesWithoutLine = 0
        var reason: String?
    }

    mutating func add(_ report: StallReport) {
        reports += 1
        for frame in report.frames {
            frames += 1
            if frame.function != nil { named += 1 }
            guard let index = frame.image, frame.function == nil || (frame.file == nil && frame.isInApp) else {
                continue
            }
            let image = report.images[index]
            let known = images.firstIndex { $0.image == image.name && $0.buildID == image.buildID }
            let place = known ?? images.count
            if known == nil { images.append(Missing(image: image.name, path: image.path, buildID: image.buildID)) }
            if frame.function == nil { images[place].unnamedFrames += 1 } else { images[place].framesWithoutLine += 1 }
            images[place].reason = image.reason ?? frame.reason ?? images[place].reason
        }
        images.sort {
            ($1.unnamedFrames, $1.framesWithoutLine, $0.image, $0.buildID ?? "")
                < ($0.unnamedFrames, $0.framesWithoutLine, $1.image, $1.buildID ?? "")
        }
    }

    func text(for terminal: Terminal) -> String {
        let share = frames == 0 ? "" : ", \(named) of \(counted(frames, "frame has", "frames have")) a name"
        let summary = "\(counted(reports, "report", "reports"))\(share).\n"
        guard !images.isEmpty else { return summary }
        var table = TextTable([
            .init("image", style: .bold), .init("build ID", isFlexible: true), .init("no name", .right),
            .init("no line", .right), .init("why", isFlexible: true),
        ])
        for image in images {
            table.add([
                image.image, image.buildID ?? "-", String(image.unnamedFrames), String(image.framesWithoutLine),
                image.reason ?? "-",
            ])
        }
        return "Some names or lines were not found:\n\n\(table.text(for: terminal))\n\(summary)"
    }
}
