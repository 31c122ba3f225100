import StallReports

/// The reports that a command line selects: read one after another, never all at once.
///
/// What cannot be read is named on standard error, passed over and counted. Each `forEach` reads them anew, but for
/// standard input, which can be read once.
struct ReadReports {
    let files: ReportFiles
    let filter: ReportFilter
    /// Whether a faulty report is an error.
    let isStrict: Bool
    /// Where it is told what is passed over.
    var complain: (String) -> Void = StandardError.write

    /// How many reports and bytes of JSON are decoded side by side.
    private static let batch = (reports: 128, bytes: 32 << 20)

    /// Whole reports, in the order of ``ReportFiles/files``.
    ///
    /// - Throws: What `body` throws, and a ``CommandFailure`` when there is no report at all, or a faulty one and
    ///   ``isStrict`` is set.
    func forEach(_ body: (StallReport, ReportOrigin) throws -> Void) throws {
        let filter = filter
        try forEachDocument { bytes throws(UnreadableReport) -> StallReport? in
            if !filter.isEmpty {
                let summary = try? ReportSummary(json: bytes, functions: filter.needsFunctions)
                if let summary, !filter.matches(summary) { return nil }
            }
            do throws(StallWatchError) {
                return try StallReport(jsonData: bytes)
            } catch {
                throw UnreadableReport(error.description)
            }
        } body: { report, origin in
            if let report { try body(report, origin) }
        }
    }

    /// What grouping and listing need of the reports, in a tenth of the time that whole reports take.
    ///
    /// - Throws: As ``forEach(_:)``.
    func forEachSummary(_ body: (ReportSummary, ReportOrigin) throws -> Void) throws {
        let filter = filter
        try forEachDocument { bytes throws(UnreadableReport) -> ReportSummary in
            try ReportSummary(json: bytes, functions: filter.needsFunctions)
        } body: { summary, origin in
            if filter.matches(summary) { try body(summary, origin) }
        }
    }

    /// What `decode` makes of each report's bytes.
    ///
    /// - Parameters:
    ///   - decode: Called on several threads. What it throws makes the report a faulty one.
    ///   - body: Called in the order of the reports.
    /// - Throws: As ``forEach(_:)``.
    func forEachDocument<Value: Sendable>(
        _ decode: @escaping @Sendable ([UInt8]) throws(UnreadableReport) -> Value,
        body: (Value, ReportOrigin) throws -> Void
    ) throws {
        var documents = ReportDocuments(files.files)
        let progress = ProgressBar("reading", total: files.files.reduce(0) { $0 + $1.size })
        defer { progress.clear() }
        var read = 0
        var faulty = 0
        func skip(_ name: String, _ reason: String) {
            faulty += 1
            progress.clear()
            complain("Skipped \(name.printable): \(reason.printable)\n")
        }
        for fault in files.faults { skip(fault.path, fault.reason) }
        while let batch = try documents.next(reports: Self.batch.reports, bytes: Self.batch.bytes) {
            let values = batch.concurrentMap { document in
                Result { () throws(UnreadableReport) in try decode(try document.bytes()) }
            }
            for (document, value) in zip(batch, values) {
                switch value {
                case .success(let value):
                    read += 1
                    try body(value, document.origin)
                case .failure(let fault):
                    skip(document.origin.description, fault.reason)
                }
            }
            progress.advance(to: documents.bytesRead)
        }
        progress.clear()
        try conclude(read: read, faulty: faulty)
    }

    private func conclude(read: Int, faulty: Int) throws(CommandFailure) {
        if faulty > 0 {
            complain("\(counted(faulty, "report was", "reports were")) skipped, \(read) read.\n")
        }
        if isStrict, faulty > 0 {
            throw CommandFailure(.faultyData, "\(counted(faulty, "report is", "reports are")) faulty.")
        }
        guard read == 0 else { return }
        guard faulty == 0 else { throw CommandFailure(.faultyData, "There is no report that can be read.") }
        throw CommandFailure(
            .noInput,
            "There is no report: a directory has them in files stall-*.json and *.ndjson; name the one that the monitor "
                + "writes to."
        )
    }
}
