import ArgumentParser
import Glibc
import LinuxSupport
import StallReports

struct FilterOptions: ParsableArguments {
    static let causes = StallReport.causeWords
    static let kinds: [String] = [
        StallKind.stall, .saturation, .starvation, .spinning, .modeStarvation, .notRun, .overdue, .pinned,
    ].map(\.rawValue)

    @Option(
        help: ArgumentHelp(
            "Stalls that began at or after this time: 2026-11-21T08:00, 2026-11-21, or 2h for two hours ago. UTC.",
            valueName: "time"),
        transform: TimeArgument.init(parsing:)
    )
    var since: TimeArgument?

    @Option(
        help: ArgumentHelp("Stalls that began before this time.", valueName: "time"),
        transform: TimeArgument.init(parsing:))
    var until: TimeArgument?

    @Option(each: "The loop's label. Can be repeated, as can the options that follow.", valueName: "label")
    var loop: [String] = []

    @Option(each: "The cause: \(causes.joined(separator: ", ")).", valueName: "word", completion: .list(causes))
    var cause: [String] = []

    @Option(each: "The kind: \(kinds.joined(separator: ", ")).", valueName: "word", completion: .list(kinds))
    var kind: [String] = []

    @Option(each: "The label of the context, or the task's name without one.", valueName: "label")
    var context: [String] = []

    @Option(each: "Part of the name of a function on a stack.", valueName: "text")
    var function: [String] = []

    @Option(each: "The fingerprint, or its first digits.", valueName: "digits")
    var fingerprint: [String] = []

    @Option(each: "The process's name or id.", valueName: "name")
    var process: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A pair of the metadata; a report has to have all that are given.", valueName: "key=value"),
        transform: ReportFilter.MetadataCondition.init(parsing:)
    )
    var metadata: [ReportFilter.MetadataCondition] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Stalls of this duration or longer, such as 500ms or 2s.", valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var min: DurationArgument?

    var filter: ReportFilter {
        ReportFilter(
            since: since?.time, until: until?.time, loops: loop, causes: cause, kinds: kind, contexts: context,
            functions: function, fingerprints: fingerprint, minimumMilliseconds: min?.milliseconds ?? 0,
            processes: process, metadata: metadata
        )
    }

    func read(_ paths: [String], strict: Bool) throws -> ReadReports {
        ReadReports(files: try ReportFiles(paths: paths), filter: filter, isStrict: strict)
    }
}

extension Option where Value == [String] {
    /// An option that can be repeated, and whose values may begin with dashes.
    init(wrappedValue: [String], each help: String, valueName: String, completion: CompletionKind? = nil) {
        self.init(
            wrappedValue: wrappedValue, parsing: .unconditionalSingleValue,
            help: ArgumentHelp(help, valueName: valueName), completion: completion)
    }
}

struct ReportFilter: Sendable, Equatable {
    var since: Timestamp?
    var until: Timestamp?
    var loops: [String] = []
    var causes: [String] = []
    var kinds: [String] = []
    var contexts: [String] = []
    var functions: [String] = []
    var fingerprints: [String] = []
    /// The first digits of a fingerprint, or the first or last ones of a report's id.
    var ids: [String] = []
    var minimumMilliseconds = 0.0
    var processes: [String] = []
    var metadata: [MetadataCondition] = []

    struct MetadataCondition: Sendable, Equatable {
        var key: String
        var value: String
    }

    var needsFunctions: Bool { !functions.isEmpty }

    /// Whether statistics files are about more than the reports that match.
    var limitsTime: Bool { since != nil || until != nil || !processes.isEmpty || !metadata.isEmpty }

    /// Whether the report matches at least one condition of each kind, and every pair of metadata.
    func matches(_ report: ReportSummary) -> Bool {
        func isIn(_ wanted: [String], _ value: String?) -> Bool { wanted.isEmpty || value.map(wanted.contains) == true }
        if let since, report.startedAt < since { return false }
        if let until, report.startedAt >= until { return false }
        return report.durationMilliseconds >= minimumMilliseconds
            && isIn(loops, report.loop)
            && isIn(causes, report.causeWord)
            && isIn(kinds, report.kind.rawValue)
            && isIn(contexts, report.context)
            && (fingerprints.isEmpty || fingerprints.contains { report.fingerprint?.hasPrefix($0) == true })
            && (ids.isEmpty || ids.contains { report.fingerprint?.hasPrefix($0) == true || report.hasID($0) })
            && (processes.isEmpty
                || processes.contains { $0 == report.process.name || $0 == String(report.process.pid) })
            && (functions.isEmpty || functions.contains { text in report.functions.contains { $0.contains(text) } })
            && metadata.allSatisfy { report.metadata[$0.key] == $0.value }
    }
}

extension ReportFilter.MetadataCondition {
    init(parsing text: String) throws {
        guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
            throw ValidationError("'\(text)' has no '='. Give a key and its value, such as version=1.4.2.")
        }
        self.init(key: String(text[..<sign]), value: String(text[text.index(after: sign)...]))
    }
}

struct ReportSelection: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Report files, NDJSON files, directories (searched), or - for standard input; digits of a fingerprint or an id, or "
                + "a row of top, for some of the reports. Default: \(ReportFiles.standardFolder).", valueName: "path"))
    var words: [String] = []

    @OptionGroup(title: "Which reports") var filters: FilterOptions

    @Flag(help: "Fail when a report is faulty (exit status 65) instead of skipping it.")
    var strict = false

    /// The paths, with the default.
    var paths: [String] {
        let given = SelectedWords(words).paths
        return given.isEmpty ? [ReportFiles.standardFolder] : given
    }

    func read() throws -> ReadReports {
        let words = SelectedWords(words)
        var reports = try filters.read(ReportFiles.paths(words.paths), strict: strict)
        let ids = try words.digits + fingerprints(ofRows: words.rows, among: reports)
        reports.filter.ids = ids
        return reports
    }

    /// The fingerprints of rows of `top`, which reads the reports once more.
    private func fingerprints(ofRows rows: [Int], among reports: ReadReports) throws -> [String] {
        guard !rows.isEmpty else { return [] }
        if reports.files.paths.contains("-") {
            throw ValidationError("Standard input is read once: give digits of a fingerprint in place of a row.")
        }
        var (groups, quiet) = (StallGroups(), reports)
        quiet.complain = { _ in }
        try quiet.forEach(.summary) { groups.add($0, $1) }
        let sorted = groups.sorted(by: .total)
        return try rows.map { row in
            guard sorted.indices.contains(row - 1) else {
                throw CommandFailure(
                    .nothing, "There is no row \(row): top has \(counted(sorted.count, "row", "rows")).")
            }
            guard let fingerprint = sorted[row - 1].fingerprint else {
                throw CommandFailure(.nothing, "Row \(row) has no fingerprint: run stallwatch symbolicate first.")
            }
            return fingerprint
        }
    }
}

/// What the words of a command line mean: an existing path wins over all else.
struct SelectedWords: Equatable {
    private(set) var paths: [String] = []
    private(set) var digits: [String] = []
    private(set) var rows: [Int] = []

    init(_ words: [String], isThere: (String) -> Bool = { FileStatus(path: $0) != nil }) {
        for word in words {
            let isNumber = word.utf8.allSatisfy { 0x30...0x39 ~= $0 }
            if word == "-" || isThere(word) {
                paths.append(word)
            } else if isNumber, word.utf8.count <= 3, let row = Int(word) {
                rows.append(row)
            } else if word.utf8.count >= 4, word.utf8.allSatisfy({ "0123456789abcdef-".utf8.contains($0) }) {
                digits.append(word)
            } else {
                // Reading says that it is not there.
                paths.append(word)
            }
        }
    }
}

extension ReportSummary {
    func hasID(_ digits: String) -> Bool { id.hasPrefix(digits) || id.hasSuffix(digits) }
}

struct DurationArgument: Sendable, Equatable {
    let milliseconds: Double
}

extension DurationArgument: CustomStringConvertible {
    init(parsing text: String) throws {
        do throws(DurationText.Fault) {
            milliseconds = try DurationText.duration(text) / .milliseconds(1)
        } catch {
            throw ValidationError(error.description)
        }
    }

    var description: String { DurationText.text(.nanoseconds(Int64((milliseconds * 1_000_000).rounded()))) }
}

struct TimeArgument: Sendable, Equatable {
    let time: Timestamp

    init(parsing text: String) throws {
        try self.init(parsing: text, now: Timestamp(microsecondsSince1970: Int64(Glibc.time(nil)) * 1_000_000))
    }

    init(parsing text: String, now: Timestamp) throws {
        if let ago = try? DurationArgument(parsing: text) {
            time = Timestamp(microsecondsSince1970: now.microsecondsSince1970 - Int64(ago.milliseconds * 1_000))
            return
        }
        let plain = (text.hasSuffix("Z") ? text.dropLast() : text[...]).map { $0 == " " ? "T" : String($0) }.joined()
        let form = "0000-01-01T00:00:00.000000"
        guard plain.count >= "2026-11-21".count, plain.count <= form.count,
            let time = Timestamp(plain + form.dropFirst(plain.count) + "Z")
        else {
            throw ValidationError(
                "'\(text)' is not a time. Give one such as 2026-11-21, 2026-11-21T08:00 or 2026-11-21T08:00:00.5Z (UTC), or an "
                    + "age such as 2h."
            )
        }
        self.time = time
    }
}
