internal import Foundation

extension StallReport {
    /// Returns the report as JSON: UTF-8, indented, with sorted keys and a line feed at the end.
    ///
    /// The result is never empty: encoding cannot fail.
    public func jsonData() -> [UInt8] { encodeJSON(self, isIndented: true) }

    /// Returns the report as one line of JSON, with a line feed at the end.
    package func jsonLine() -> [UInt8] { encodeJSON(self, isIndented: false) }

    /// Decodes and validates a report.
    ///
    /// Ignores unknown fields and accepts unknown words. Memory use is bounded for any input: the initializer refuses a
    /// document with more values than a report can have before it decodes it.
    ///
    /// - Parameter jsonData: A JSON document in UTF-8, at most ``maximumBytes`` long.
    /// - Throws: ``StallWatchError`` with the code ``StallWatchError/Code/unreadableReport`` and the place of the first
    ///   fault: a syntax error, a missing field, a value or an index out of range, or a newer ``schemaVersion``.
    public init(jsonData: [UInt8]) throws(StallWatchError) {
        guard jsonData.count <= Self.maximumBytes else {
            throw StallWatchError(
                .unreadableReport,
                "this is not a stall report: it has \(jsonData.count) bytes, but the limit is \(Self.maximumBytes)"
            )
        }
        if let excess = JSONBounds(jsonData).excess {
            throw StallWatchError(.unreadableReport, "this is not a stall report: \(excess)")
        }
        do {
            self = try JSONDecoder().decode(StallReport.self, from: Data(jsonData))
        } catch let error as DecodingError {
            // The failure may result from a newer schema, which makes the better message.
            if let version = try? JSONDecoder().decode(Version.self, from: Data(jsonData)) { try version.check() }
            throw StallWatchError(.unreadableReport, "this is not a stall report: \(error.place)")
        } catch {
            throw StallWatchError(.unreadableReport, "this is not a stall report: \(error)")
        }
        try Version(schemaVersion: schemaVersion).check()
        if let fault { throw StallWatchError(.unreadableReport, "this is not a stall report: \(fault)") }
    }
}

private struct Version: Decodable {
    var schemaVersion: Int

    func check() throws(StallWatchError) {
        guard schemaVersion > StallReport.currentSchemaVersion else { return }
        throw StallWatchError(
            .unreadableReport,
            "the report has schema version \(schemaVersion), and this version reads up to "
                + "\(StallReport.currentSchemaVersion): use a newer StallWatch"
        )
    }
}

extension DecodingError {
    /// The path of the fault, followed by its description.
    var place: String {
        let context: Context
        switch self {
        case .typeMismatch(_, let found), .valueNotFound(_, let found), .keyNotFound(_, let found),
            .dataCorrupted(let found):
            context = found
        @unknown default:
            return String(describing: self)
        }
        let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
        return "\(path.isEmpty ? "the document" : path): \(context.debugDescription)"
    }
}
