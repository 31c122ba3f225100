import StallReports

/// One report's JSON, or the file that has it.
struct ReportDocument: Sendable {
    var origin: ReportOrigin
    /// `nil` for a file with one report, which is read where it is decoded.
    var content: [UInt8]?
    /// The number of bytes.
    var size: Int

    /// The JSON.
    func bytes() throws(UnreadableReport) -> [UInt8] {
        guard let content else { return try FileReader.contents(of: origin.path) }
        guard content.count <= StallReport.maximumBytes else {
            throw UnreadableReport(
                "it has more than \(StallReport.maximumBytes) bytes, the limit for a report")
        }
        return content
    }
}
