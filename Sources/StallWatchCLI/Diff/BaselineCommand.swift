import ArgumentParser
import Glibc
import StallReports
import TextOutput

struct BaselineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "baseline",
        abstract: "Maintain a file of known stalls, which tests excuse until a day.",
        subcommands: [BaselineUpdateCommand.self]
    )
}

struct BaselineUpdateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "update",
        abstract: "Add the stalls of reports to a baseline, by fingerprint.",
        discussion: """
            Tests that use the baseline (the trait's argument, or STALLWATCH_BASELINE) do not fail for its stalls up to and including the \
            day on which the entry expires. Entries that exist stay as they are, also expired ones: edit their day, or remove them.

            The reports are those that the tests attach, or that they write to the directory in STALLWATCH_REPORTS.

            Examples:
              mkdir -p reports; swift test --attachments-path reports
              stallwatch baseline update reports
              STALLWATCH_BASELINE=stall-baseline.json swift test
              stallwatch baseline update reports --file ci/stalls.json --expires 2027-03-31
            """
    )
    static let standardDays = 30
    private static let maximumBytes = 16 << 20

    @OptionGroup var selection: ReportSelection

    @Option(
        name: [.long, .customShort("o"), .customLong("output")],
        help: ArgumentHelp("The baseline; it is created if it does not exist.", valueName: "path"))
    var file = StallBaseline.fileName

    @Option(
        help: ArgumentHelp(
            "The last day on which new entries excuse a stall. Default: \(standardDays) days from today.",
            valueName: "day"),
        transform: day(parsing:)
    )
    var expires: CalendarDay?

    func run() throws {
        let today = CalendarDay(Timestamp(microsecondsSince1970: Int64(time(nil)) * 1_000_000))
        let expires = expires ?? today.adding(days: Self.standardDays)
        if expires < today { throw ValidationError("--expires is \(expires), which is over. Today is \(today), UTC.") }
        var baseline = try readBaseline()
        let kept = baseline.entries.count
        var unnamed = 0
        // Tests that name a baseline fail without one, also while nothing stalls.
        try NoStalls.allowed(true) {
            try selection.read().forEach(.whole) { report, _ in
                if let entry = StallBaseline.Entry(report, until: expires) { baseline.add(entry) } else { unnamed += 1 }
            }
        }
        try OutputFile(path: file).write(baseline.jsonData())
        let added = baseline.entries.count - kept
        var text = "\(file): \(counted(added, "entry", "entries")) added"
        if added > 0 { text += " until \(expires)" }
        text += ", \(kept) kept.\n"
        let expired = baseline.entries.count { $0.expires < today }
        if expired > 0 {
            text += "\(counted(expired, "entry has", "entries have")) expired: edit the day or remove it.\n"
        }
        if unnamed > 0 {
            text += counted(unnamed, "report has", "reports have")
            text += " no fingerprint: run `stallwatch symbolicate` first.\n"
        }
        try StandardOutput.write(text)
    }

    private func readBaseline() throws -> StallBaseline {
        guard access(file, F_OK) == 0 else { return StallBaseline() }
        do {
            return try StallBaseline(jsonData: FileReader.contents(of: file, limit: Self.maximumBytes))
        } catch let error as UnreadableReport {
            throw CommandFailure(.inputOutput, "\(file): \(error.reason)")
        } catch let error as StallWatchError {
            throw CommandFailure(.faultyData, "\(file) is not a baseline: \(error.message)")
        }
    }

    private static func day(parsing text: String) throws -> CalendarDay {
        guard let day = CalendarDay(text) else {
            throw ValidationError("'\(text)' is not a day. Give one such as 2027-03-31.")
        }
        return day
    }
}
