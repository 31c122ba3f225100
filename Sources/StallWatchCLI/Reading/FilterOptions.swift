import StallReports
import ArgumentParser

/// The filters for reports.
struct FilterOptions: ParsableArguments {
    /// The causes that this version knows.
    static let causes: [String] = [
        StallReport.CauseKind.cpu, .lock, .io, .sleep, .syscall, .paging, .cpuContention, .throttled, .deadlock,
        .unknown,
    ].map(\.rawValue)
    /// The kinds that this version knows.
    static let kinds: [String] = [StallReport.Kind.stall, .saturation, .starvation].map(\.rawValue)

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

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "The loop's label. Can be repeated, as can the options that follow.", valueName: "label"))
    var loop: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "The cause: \(causes.joined(separator: ", ")).", valueName: "word"),
        completion: .list(causes))
    var cause: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("The kind: \(kinds.joined(separator: ", ")).", valueName: "word"),
        completion: .list(kinds))
    var kind: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("The label of the context, or the task's name without one.", valueName: "label"))
    var context: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Part of the name of a function on a stack.", valueName: "text"))
    var function: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("The fingerprint, or its first digits.", valueName: "digits"))
    var fingerprint: [String] = []

    @Option(parsing: .unconditionalSingleValue, help: ArgumentHelp("The process's name or id.", valueName: "name"))
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

    /// The options as a filter.
    var filter: ReportFilter {
        ReportFilter(
            since: since?.time, until: until?.time, loops: loop, causes: cause, kinds: kind, contexts: context,
            functions: function,
            fingerprints: fingerprint, minimumMilliseconds: min?.milliseconds ?? 0, processes: process,
            metadata: metadata
        )
    }

    /// Finds the files at `paths`, for commands that declare their paths themselves.
    ///
    /// - Throws: A ``CommandFailure`` when a path cannot be read.
    func read(_ paths: [String], strict: Bool) throws -> ReadReports {
        ReadReports(files: try ReportFiles(paths: paths), filter: filter, isStrict: strict)
    }
}
