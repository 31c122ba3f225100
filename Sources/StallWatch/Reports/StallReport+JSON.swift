internal import Foundation

extension StallReport {
    /// The report as JSON: UTF-8, indented, keys sorted, a line feed at the end.
    public func jsonData() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan"
        )
        // Every stored type is a string, a number, a Boolean, or made of those: with the strategy above, none can fail.
        guard let data = try? encoder.encode(self) else { return [] }
        return [UInt8](data) + [UInt8(ascii: "\n")]
    }

    /// Reads a report from JSON.
    ///
    /// Fields that this version does not know are passed over.
    ///
    /// - Throws: ``StallWatchError/Code/unreadableReport``, with the place of the first fault.
    public init(jsonData: [UInt8]) throws(StallWatchError) {
        do {
            self = try JSONDecoder().decode(StallReport.self, from: Data(jsonData))
        } catch let error as DecodingError {
            throw StallWatchError(.unreadableReport, "this is not a stall report: \(error.place)")
        } catch {
            throw StallWatchError(.unreadableReport, "this is not a stall report: \(error)")
        }
        guard schemaVersion <= Self.currentSchemaVersion else {
            throw StallWatchError(
                .unreadableReport,
                "the report has schema version \(schemaVersion), and this version reads up to "
                    + "\(Self.currentSchemaVersion): use a newer StallWatch"
            )
        }
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
