import Foundation
import StallReports
import TextOutput

/// The reports that a command line selects, read in batches; of several with one id, only the first one read counts.
///
/// Unreadable reports are named on standard error, skipped and counted. Standard input can be read once.
struct ReadReports {
    let files: ReportFiles
    var filter: ReportFilter
    let isStrict: Bool
    var complain: (String) -> Void = StandardError.write

    /// The files that may have statistics about the processes of these reports, and of no others.
    var statistics: [String] { filter.limitsTime ? [] : files.others }

    /// The most reports and bytes of JSON that are decoded at the same time.
    private static let batch = (reports: 128, bytes: 32 << 20)
    /// The most skipped reports that are named.
    static let maximumNamed = 10

    /// Passes the reports that match ``filter`` to `body`, in the order of ``ReportFiles/files``.
    ///
    /// - Throws: The errors of `body`; without `side`, ``NoStalls`` if there is no report, and a ``CommandFailure`` if none
    ///   matches or a filter has an unknown value; and one if a faulty report is found and ``isStrict`` is set.
    func forEach<Form: Sendable>(
        _ reading: ReportReading<Form>, side: FilterValues? = nil, _ body: (Form, ReportOrigin) throws -> Void
    ) throws {
        let values = side ?? FilterValues(filter)
        let filter = filter
        var (read, matched) = (0, 0)
        do {
            try forEachDocument { bytes throws(UnreadableReport) in
                try reading.read(bytes, filter)
            } body: { report, origin in
                values.add(report.summary)
                read += 1
                guard let form = report.form else { return }
                matched += 1
                try body(form, origin)
            }
        } catch is NoStalls where side != nil {
            // A side without reports is a program that never stalled.
            return
        }
        guard side == nil else { return }
        try values.check()
        guard matched == 0 else { return }
        guard filter.ids.isEmpty else {
            let ids = filter.ids.joined(separator: "' or '")
            throw CommandFailure(.nothing, "No report matches: none has the fingerprint or the id '\(ids)'.")
        }
        throw CommandFailure(.nothing, "No report matches: \(counted(read, "report was", "reports were")) read.")
    }

    /// A report for which `decode` throws is faulty, and a second report with the same id does not count.
    private func forEachDocument<Form: Sendable>(
        _ decode: @escaping @Sendable ([UInt8]) throws(UnreadableReport) -> ReportReading<Form>.Result,
        body: (ReportReading<Form>.Result, ReportOrigin) throws -> Void
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
            guard faulty <= Self.maximumNamed else { return }
            progress.clear()
            complain("Skipped \(origin.description.printable): \(reason.printable)\n")
        }
        for fault in files.faults { skip(ReportOrigin(path: fault.path), fault.reason) }
        while let batch = try documents.next(reports: Self.batch.reports, bytes: Self.batch.bytes) {
            let values = batch.concurrentMap { document in
                Result { () throws(UnreadableReport) in try decode(try document.bytes()) }
            }
            for (document, value) in zip(batch, values) {
                switch value {
                case .success(let value):
                    if !ids.insert(value.summary.id).inserted {
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
        if faulty > Self.maximumNamed { complain("… and \(faulty - Self.maximumNamed) more.\n") }
        if faulty > 0 {
            complain("\(counted(faulty, "report was", "reports were")) skipped, \(read) read.\n")
        }
        if isStrict, faulty > 0 {
            throw CommandFailure(.faultyData, "\(counted(faulty, "report is", "reports are")) faulty.")
        }
        guard read == 0 else { return }
        guard faulty == 0 else { throw CommandFailure(.faultyData, "No report could be read.") }
        throw NoStalls(paths: files.paths, remark: files.leftOut)
    }
}

struct UnreadableReport: Error, Equatable {
    let reason: String

    init(_ reason: String) { self.reason = reason }

    /// Decodes a report's JSON; throws the place of the first fault, or that a newer version has written it.
    static func decode<Value: Decodable>(
        _ type: Value.Type, from json: [UInt8], prepare: (JSONDecoder) -> Void
    ) throws(UnreadableReport) -> Value {
        let decoder = JSONDecoder()
        prepare(decoder)
        do {
            return try decoder.decode(type, from: Data(json))
        } catch {
            // The failure may result from a newer schema, which makes the better message.
            if let newer = StallReport.newerVersion(in: json) { throw UnreadableReport(newer) }
            let fault = (error as? DecodingError)?.fault(in: json) ?? "\(error)"
            throw UnreadableReport("this is not a stall report: \(fault)")
        }
    }
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

struct UndecodedReport: Sendable {
    let summary: ReportSummary
    let json: [UInt8]
}

struct ReportReading<Form: Sendable>: Sendable {
    typealias Result = (summary: ReportSummary, form: Form?)

    /// Decodes a report's JSON in one pass; the form is `nil` if the report does not match the filter.
    let read: @Sendable (_ json: [UInt8], ReportFilter) throws(UnreadableReport) -> Result
}

extension ReportReading<ReportSummary> {
    /// The summary, in a fifth of the time of a whole report.
    static var summary: Self { summary(withCallers: { _ in false }) }

    /// The summary, with the culprit's callers in reports with some fingerprints; these take as long as all other fields.
    static func summary(withCallers: @escaping @Sendable (_ fingerprint: String?) -> Bool) -> Self {
        Self { json, filter throws(UnreadableReport) in
            let summary = try ReportSummary(json: json, .init(functions: filter.needsFunctions, callers: withCallers))
            return (summary, filter.matches(summary) ? summary : nil)
        }
    }
}

extension ReportReading<ReportSummary> {
    /// The summary with the explanation.
    static var explained: Self {
        Self { json, filter throws(UnreadableReport) in
            let (summary, report) = try ReportReading<StallReport>.whole.read(json, filter)
            var explained = summary
            explained.explanation = report?.explanation
            return (summary, report == nil ? nil : explained)
        }
    }
}

extension ReportReading<UndecodedReport> {
    static var undecoded: Self {
        Self { json, filter throws(UnreadableReport) in
            let summary = try ReportSummary(json: json, .init(functions: filter.needsFunctions))
            return (summary, filter.matches(summary) ? UndecodedReport(summary: summary, json: json) : nil)
        }
    }
}

extension ReportReading<StallReport> {
    static var whole: Self {
        Self { json, filter throws(UnreadableReport) in
            if let excess = StallReport.sizeFault(of: json) {
                throw UnreadableReport("this is not a stall report: \(excess)")
            }
            let decoded = try UnreadableReport.decode(MatchingReport.self, from: json) { decoder in
                if let key = MatchingReport.filter { decoder.userInfo[key] = filter }
                if let key = ReportSummary.Extras.key {
                    decoder.userInfo[key] = ReportSummary.Extras(functions: filter.needsFunctions)
                }
            }
            try decoded.summary.check()
            if let fault = decoded.report?.fault { throw UnreadableReport("this is not a stall report: \(fault)") }
            return (decoded.summary, decoded.report)
        }
    }
}

private struct MatchingReport: Decodable {
    static let filter = CodingUserInfoKey(rawValue: "stallwatch.filter")

    let summary: ReportSummary
    let report: StallReport?

    init(from decoder: any Decoder) throws {
        summary = try ReportSummary(from: decoder)
        let filter = Self.filter.flatMap { decoder.userInfo[$0] as? ReportFilter }
        report = filter?.matches(summary) ?? true ? try StallReport(from: decoder) : nil
    }
}

/// Finds misspelled values of filters: those that are not known and that no report has.
final class FilterValues {
    private var options: [(name: String, wanted: [String], known: Set<String>, status: CommandFailure.Status)]

    init(_ filter: ReportFilter) {
        options = [
            ("--cause", filter.causes, Set(FilterOptions.causes), .usage),
            ("--kind", filter.kinds, Set(FilterOptions.kinds), .usage), ("--loop", filter.loops, [], .nothing),
            ("--context", filter.contexts, [], .nothing),
        ]
    }

    /// Adds the values of a report, whether it matches the filters or not.
    func add(_ report: ReportSummary) {
        let values = [report.causeWord, report.kind.rawValue, report.loop, report.context]
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
