import StallReports
import TextOutput

/// The reports that a command line selects, read in batches.
///
/// Unreadable reports are named on standard error, skipped and counted. Of several reports with one id, only the first one
/// read counts. Each `forEach` reads the files anew; standard input can be read once.
struct ReadReports {
    let files: ReportFiles
    let filter: ReportFilter
    let isStrict: Bool
    var complain: (String) -> Void = StandardError.write

    /// The files that may have statistics about the processes of these reports, and of no others.
    var statistics: [String] { filter.limitsTime ? [] : files.others }

    /// The most reports and bytes of JSON that are decoded at the same time.
    private static let batch = (reports: 128, bytes: 32 << 20)

    /// Whole reports, in the order of ``ReportFiles/files``.
    ///
    /// - Throws: The errors of `body`, and a ``CommandFailure`` if there is no report or none matches, if a faulty one is
    ///   found and ``isStrict`` is set, or if a filter has an unknown value.
    func forEach(_ body: (StallReport, ReportOrigin) throws -> Void) throws {
        try forEachMatch { bytes, _ throws(UnreadableReport) in
            try StallReport(json: bytes)
        } body: { _, report, origin in
            try body(report, origin)
        }
    }

    /// The reports' summaries, in a fifth of the time of whole reports.
    func forEachSummary(_ body: (ReportSummary, ReportOrigin) throws -> Void) throws {
        try forEachMatch { _, _ throws(UnreadableReport) in
        } body: { summary, _, origin in
            try body(summary, origin)
        }
    }

    /// The summaries of one of several sides, which may have no report that matches; notes what filters may name.
    func forEachSummary(
        noting values: inout UnknownFilterValues, _ body: (ReportSummary, ReportOrigin) throws -> Void
    ) throws {
        try forEachOfSide({ _, _ throws(UnreadableReport) in }, noting: &values) { try body($0, $2) }
    }

    /// The same with whole reports.
    func forEach(
        noting values: inout UnknownFilterValues, _ body: (StallReport, ReportOrigin) throws -> Void
    ) throws {
        try forEachOfSide({ bytes, _ throws(UnreadableReport) in try StallReport(json: bytes) }, noting: &values) {
            try body($1, $2)
        }
    }

    private func forEachOfSide<Value: Sendable>(
        _ decode: @escaping @Sendable ([UInt8], ReportSummary) throws(UnreadableReport) -> Value,
        noting values: inout UnknownFilterValues, body: (ReportSummary, Value, ReportOrigin) throws -> Void
    ) throws {
        var matched = 0
        do {
            try forEachMatch(decode, noting: &values) {
                matched += 1
                try body($0, $1, $2)
            }
        } catch let failure as CommandFailure where failure.status == .nothing && matched == 0 {
            // A side without reports is a program that never stalled.
        }
    }

    /// The summaries of the reports that match ``filter``, each with what `decode` makes of its JSON.
    func forEachMatch<Value: Sendable>(
        _ decode: @escaping @Sendable ([UInt8], ReportSummary) throws(UnreadableReport) -> Value,
        body: (ReportSummary, Value, ReportOrigin) throws -> Void
    ) throws {
        var values = UnknownFilterValues(filter)
        let (read, matched) = try forEachMatch(decode, noting: &values, body: body)
        try values.check()
        guard matched == 0 else { return }
        throw CommandFailure(.nothing, "No report matches: \(counted(read, "report was", "reports were")) read.")
    }

    /// Returns how many reports were read, and how many of them match.
    @discardableResult
    private func forEachMatch<Value: Sendable>(
        _ decode: @escaping @Sendable ([UInt8], ReportSummary) throws(UnreadableReport) -> Value,
        noting values: inout UnknownFilterValues, body: (ReportSummary, Value, ReportOrigin) throws -> Void
    ) throws -> (read: Int, matched: Int) {
        let filter = filter
        var (read, matched) = (0, 0)
        try forEachDocument { bytes throws(UnreadableReport) -> (summary: ReportSummary, value: Value?) in
            let summary = try ReportSummary(json: bytes, functions: filter.needsFunctions)
            return (summary, filter.matches(summary) ? try decode(bytes, summary) : nil)
        } id: {
            $0.summary.id
        } body: { report, origin in
            values.add(report.summary)
            read += 1
            guard let value = report.value else { return }
            matched += 1
            try body(report.summary, value, origin)
        }
        return (read, matched)
    }

    /// Decodes each report on one of several threads and passes it to `body` in their order.
    ///
    /// A report for which `decode` throws is faulty, and `skipped` gets its place and the reason. A second report with the
    /// same `id` does not count.
    func forEachDocument<Value: Sendable>(
        _ decode: @escaping @Sendable ([UInt8]) throws(UnreadableReport) -> Value,
        id: (Value) -> String? = { _ in nil }, skipped: (ReportOrigin, String) -> Void = { _, _ in },
        body: (Value, ReportOrigin) throws -> Void
    ) throws {
        var ids: Set<String> = []
        var repeated = 0
        var documents = ReportDocuments(files.files)
        let progress = ProgressBar("reading", total: files.files.reduce(0) { $0 + $1.size })
        defer { progress.clear() }
        var read = 0
        var faulty = 0
        func skip(_ origin: ReportOrigin, _ reason: String) {
            faulty += 1
            progress.clear()
            complain("Skipped \(origin.description.printable): \(reason.printable)\n")
            skipped(origin, reason)
        }
        for fault in files.faults { skip(ReportOrigin(path: fault.path), fault.reason) }
        while let batch = try documents.next(reports: Self.batch.reports, bytes: Self.batch.bytes) {
            let values = batch.concurrentMap { document in
                Result { () throws(UnreadableReport) in try decode(try document.bytes()) }
            }
            for (document, value) in zip(batch, values) {
                switch value {
                case .success(let value):
                    if let id = id(value), !ids.insert(id).inserted {
                        repeated += 1
                        continue
                    }
                    read += 1
                    try body(value, document.origin)
                case .failure(let fault):
                    // A monitor removes reports over its quota, also after the directory was listed.
                    if document.content == nil, !document.exists { continue }
                    skip(document.origin, fault.reason)
                }
            }
            progress.advance(to: documents.bytesRead)
        }
        progress.clear()
        if repeated > 0 {
            complain("\(counted(repeated, "report was", "reports were")) given twice and counted once.\n")
        }
        if faulty > 0 {
            complain("\(counted(faulty, "report was", "reports were")) skipped, \(read) read.\n")
        }
        if isStrict, faulty > 0 {
            throw CommandFailure(.faultyData, "\(counted(faulty, "report is", "reports are")) faulty.")
        }
        guard read == 0 else { return }
        guard faulty == 0 else { throw CommandFailure(.faultyData, "No report could be read.") }
        throw CommandFailure(
            .nothing,
            "No report found. In a directory, reports are files named stall-*.json or *.ndjson: name the directory that the "
                + "monitor writes to."
        )
    }
}

/// Why a file or document was skipped, in words.
struct UnreadableReport: Error, Equatable {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

extension StallReport {
    init(json: [UInt8]) throws(UnreadableReport) {
        do throws(StallWatchError) {
            try self.init(jsonData: json)
        } catch {
            throw UnreadableReport(error.description)
        }
    }
}

/// Finds misspelled values of filters: those that are not known and that no report has.
struct UnknownFilterValues {
    private var options: [(name: String, wanted: [String], known: Set<String>, status: CommandFailure.Status)]

    init(_ filter: ReportFilter) {
        options = [
            ("--cause", filter.causes, Set(FilterOptions.causes), .usage),
            ("--kind", filter.kinds, Set(FilterOptions.kinds), .usage), ("--loop", filter.loops, [], .nothing),
            ("--context", filter.contexts, [], .nothing),
        ]
    }

    /// Adds the values of a report, whether it matches the filters or not.
    mutating func add(_ report: ReportSummary) {
        let values = [(report.cause ?? .unknown).rawValue, report.kind.rawValue, report.loop, report.context]
        for (index, value) in values.enumerated() where !options[index].wanted.isEmpty {
            if let value { options[index].known.insert(value) }
        }
    }

    func check() throws(CommandFailure) {
        // Without a report nothing is known of loops and contexts.
        for (name, wanted, known, status) in options where !known.isEmpty {
            guard let unknown = wanted.first(where: { !known.contains($0) }) else { continue }
            let list = known.sorted().joined(separator: ", ").printable
            throw CommandFailure(status, "\(name): no report has '\(unknown)'. The values are: \(list).")
        }
    }
}
