internal import Foundation

extension StallReport {
    /// The report as JSON: UTF-8, indented, keys sorted, a line feed at the end.
    public func jsonData() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return Self.encode(self, encoder)
    }

    /// The report as one line of JSON, with a line feed at the end.
    package func jsonLine() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Self.encode(self, encoder)
    }

    private static func encode(_ report: StallReport, _ encoder: JSONEncoder) -> [UInt8] {
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan"
        )
        // Every stored type is a string, a number, a Boolean, or made of those: with the strategy above, none can fail.
        guard let data = try? encoder.encode(report) else { return [] }
        return [UInt8](data) + [UInt8(ascii: "\n")]
    }

    /// Reads a report from JSON.
    ///
    /// Fields and words that this version does not know are passed over. Memory is bounded whatever the bytes are: a text
    /// with more values than a report can have is refused before it is decoded.
    ///
    /// - Parameter jsonData: UTF-8, ``maximumBytes`` at most.
    /// - Throws: ``StallWatchError/Code/unreadableReport``, with the place of the first fault: what is not JSON, a field that
    ///   is missing, an index that leads nowhere, or a newer ``schemaVersion``.
    public init(jsonData: [UInt8]) throws(StallWatchError) {
        guard jsonData.count <= Self.maximumBytes else {
            throw StallWatchError(
                .unreadableReport,
                "this is not a stall report: it has \(jsonData.count) bytes, and \(Self.maximumBytes) is "
                    + "the most that one may have"
            )
        }
        if let excess = JSONBounds(jsonData).excess {
            throw StallWatchError(.unreadableReport, "this is not a stall report: \(excess)")
        }
        do {
            self = try JSONDecoder().decode(StallReport.self, from: Data(jsonData))
        } catch let error as DecodingError {
            // What a newer version has changed may be what could not be read.
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
    /// The path of the fault and what is wrong there.
    fileprivate var place: String {
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
