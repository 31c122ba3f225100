import StallReports
import LinuxSupport
import ArgumentParser
import Glibc

/// Shows stalls as they happen.
struct TailCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Follow a report directory: show stalls as they happen.",
        discussion: """
            Shows a stall while it is going on and again when it has ended. On a terminal, the last line shows how long the ongoing \
            stalls have lasted. Ends with Ctrl-C.

            Examples:
              stallwatch tail stalls
              stallwatch tail stalls --loop main --min 1s
              stallwatch tail stalls --json | jq .report.culprit
            """
    )

    @Argument(help: ArgumentHelp("The directory that a monitor writes its reports to.", valueName: "directory"))
    var directory: String

    @OptionGroup(title: "Which reports") var filters: FilterOptions

    @Flag(help: "Show the existing reports too.")
    var all = false

    @OptionGroup var terminalOptions: TerminalOptions

    @Flag(help: "Print JSON, one line per event.")
    var json = false

    func validate() throws {
        // A misspelled word would match no report, ever.
        for (option, words, known) in [
            ("--cause", filters.cause, FilterOptions.causes), ("--kind", filters.kind, FilterOptions.kinds),
        ] {
            guard let unknown = words.first(where: { !known.contains($0) }) else { continue }
            throw ValidationError(
                "\(option): '\(unknown)' is unknown. The values are: \(known.joined(separator: ", ")).")
        }
    }

    func run() throws {
        let isEnding = Ending()
        Interruption.handle { isEnding.set() }
        var follower = FollowedDirectory(watch: try DirectoryWatch(path: directory), filter: filters.filter)
        let printer = TailPrinter(terminal: terminalOptions.terminal, isJSON: json)
        if !all { try follower.skipEnded(printer) }
        while !isEnding.isSet, !StandardOutput.readerIsGone {
            try follower.poll(printer)
            try printer.showOngoing(follower.ongoing)
            usleep(Self.period)
        }
        try printer.clear()
    }

    /// Microseconds between two polls: 0.2 s, which feels immediate.
    private static let period: UInt32 = 200_000
}
