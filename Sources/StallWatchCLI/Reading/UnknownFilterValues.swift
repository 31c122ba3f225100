import StallReports
import TextOutput

/// Finds misspelled values of filters: those that are not known and that no report has.
struct UnknownFilterValues {
    private let filter: ReportFilter
    private var loops: Set<String> = []
    private var causes = Set(FilterOptions.causes)
    private var kinds = Set(FilterOptions.kinds)
    private var contexts: Set<String> = []

    init(_ filter: ReportFilter) { self.filter = filter }

    /// Adds the values of a report, whether it matches the filters or not.
    mutating func add(_ report: ReportSummary) {
        if !filter.loops.isEmpty { loops.insert(report.loop) }
        if !filter.causes.isEmpty, let cause = report.cause { causes.insert(cause.rawValue) }
        if !filter.kinds.isEmpty { kinds.insert(report.kind.rawValue) }
        if !filter.contexts.isEmpty, let context = report.context { contexts.insert(context) }
    }

    /// - Throws: A ``CommandFailure`` that lists the values that exist.
    func check() throws(CommandFailure) {
        try check("--cause", filter.causes, causes, .usage)
        try check("--kind", filter.kinds, kinds, .usage)
        try check("--loop", filter.loops, loops, .noInput)
        try check("--context", filter.contexts, contexts, .noInput)
    }

    private func check(
        _ option: String, _ wanted: [String], _ known: Set<String>, _ status: CommandFailure.Status
    ) throws(CommandFailure) {
        guard let unknown = wanted.first(where: { !known.contains($0) }) else { return }
        let list = known.sorted().joined(separator: ", ").printable
        throw CommandFailure(status, "\(option): no report has '\(unknown)'. The values are: \(list).")
    }
}
