internal import Foundation

extension StallReport {
    /// Returns the report as JSON: UTF-8, indented, with sorted keys and a line feed at the end.
    ///
    /// The result is never empty: encoding cannot fail. It has at most 4 MiB, beside texts of the app's own: of a longer one
    /// outer frames of the stacks are left out, and the reason of their samples says so.
    public func jsonData() -> [UInt8] { json(isIndented: true) }

    package func jsonLine() -> [UInt8] { json(isIndented: false) }

    /// Decodes and validates a report.
    ///
    /// Ignores unknown fields and accepts unknown words. Memory use is bounded for any input: the initializer refuses a
    /// document with more values than a report can have before it decodes it.
    ///
    /// - Parameter jsonData: A JSON document in UTF-8, at most 16 MiB long.
    /// - Throws: ``StallWatchError`` with the code ``StallWatchError/Code/unreadableReport`` and the place of the first
    ///   fault: a syntax error, a missing field, a value or an index out of range, or a newer `schemaVersion`.
    public init(jsonData: [UInt8]) throws(StallWatchError) {
        func refused(_ reason: String) -> StallWatchError {
            StallWatchError(.unreadableReport, "this is not a stall report: \(reason)")
        }
        if let excess = Self.sizeFault(of: jsonData) { throw refused(excess) }
        do {
            self = try JSONDecoder().decode(StallReport.self, from: Data(jsonData))
        } catch {
            // The failure may result from a newer schema, which makes the better message.
            if let newer = Self.newerVersion(in: jsonData) { throw StallWatchError(.unreadableReport, newer) }
            throw refused((error as? DecodingError)?.fault(in: jsonData) ?? "\(error)")
        }
        if let newer = Self.newerVersion(schemaVersion) { throw StallWatchError(.unreadableReport, newer) }
        if let fault { throw refused(fault) }
    }

    /// The exceeded limit of a document's size or number of values; `nil` if none is exceeded.
    package static func sizeFault(of json: [UInt8]) -> String? {
        guard json.count <= maximumBytes else { return "it has \(json.count) bytes, but the limit is \(maximumBytes)" }
        return JSONBounds(json).excess
    }

    /// A sentence about a document's newer version; `nil` if it has none.
    package static func newerVersion(in json: [UInt8]) -> String? {
        (try? JSONDecoder().decode(Version.self, from: Data(json))).flatMap { newerVersion($0.schemaVersion) }
    }

    /// A sentence about a schema version that this version does not read; `nil` if it does.
    package static func newerVersion(_ version: Int) -> String? {
        guard version > currentSchemaVersion else { return nil }
        return "the report has schema version \(version), and this version reads up to "
            + "\(currentSchemaVersion): use a newer StallWatch"
    }

    private struct Version: Decodable {
        var schemaVersion: Int
    }
}

extension DecodingError {
    /// The place of the error, unless it is the whole document, and what is wrong there, such as `$.loop: turn is missing`.
    package func fault(in json: [UInt8]) -> String {
        func place(_ context: Context) -> String {
            let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
            return path.isEmpty ? "" : "$\(path): "
        }
        switch self {
        case .keyNotFound(let key, let context): return "\(place(context))\(key.stringValue) is missing"
        case .valueNotFound(_, let context): return "\(place(context))null is not allowed here"
        case .typeMismatch(_, let context), .dataCorrupted(let context):
            let syntax =
                context.codingPath.isEmpty ? JSONBounds(json).incompleteness ?? Self.syntaxFault(in: json) : nil
            let text = "\(place(context))\(syntax.map { "not JSON: \($0)" } ?? context.debugDescription)"
            return text.hasSuffix(".") ? String(text.dropLast()) : text
        @unknown default: return "\(self)"
        }
    }

    /// The place where a document stops being JSON: only JSONSerialization names it.
    private static func syntaxFault(in json: [UInt8]) -> String? {
        do {
            _ = try JSONSerialization.jsonObject(with: Data(json), options: .fragmentsAllowed)
            return nil
        } catch {
            return (error as NSError).userInfo[NSDebugDescriptionErrorKey] as? String
        }
    }
}

/// The number and depth of the values in a JSON text, counted before it is decoded.
///
/// A decoder needs some hundred bytes of memory for each value, and a value may be two bytes of text. Counts only: the
/// decoder refuses text that is not JSON.
struct JSONBounds {
    /// A report with twenty different stacks of 512 frames each has about 125,000 values and object members.
    static let maximumValues = 500_000
    /// The limit on the nesting of objects and arrays; a report has seven levels.
    static let maximumDepth = 64

    /// An upper bound of the number of values: counts each opening bracket and each comma.
    let values: Int
    let depth: Int
    /// Why the text cannot be a document, in words; `nil` if it is as long as its brackets ask for.
    private(set) var incompleteness: String?

    /// Counts the values and levels of a text in UTF-8, outside its strings.
    init(_ text: [UInt8]) {
        var scan = JSONScan()
        for byte in text { scan.advance(over: byte) }
        (values, depth) = (scan.values, scan.greatestDepth)
        let isEmpty = text.allSatisfy { [UInt8(ascii: " "), UInt8(ascii: "\t"), 10, 13].contains($0) }
        if isEmpty { incompleteness = "the file is empty" }
        if scan.isInString || scan.depth > 0 {
            incompleteness = "it ends in the middle of a value: the file was cut off"
        }
    }

    var excess: String? {
        if values > Self.maximumValues { return "it has \(values) values, but the limit is \(Self.maximumValues)" }
        if depth > Self.maximumDepth { return "it is \(depth) levels deep, but the limit is \(Self.maximumDepth)" }
        return nil
    }
}

/// Counts the brackets, and thereby the values, of a JSON text outside its strings.
package struct JSONScan {
    package enum State { case open, closed, broken }

    /// Whether the first value is complete; broken if it does not begin with a bracket, or a string of it has no end.
    package private(set) var state = State.open
    private(set) var depth = 0
    private(set) var greatestDepth = 0
    /// The number of opening brackets and commas.
    private(set) var values = 0
    private(set) var isInString = false
    private var isEscaped = false

    package init() {}

    package mutating func advance(over byte: UInt8) {
        if isInString {
            // A string has no control characters (RFC 8259, section 7), so its end is missing.
            if byte < 0x20, state == .open { state = .broken }
            // Before `isEscaped` changes.
            isInString = isEscaped || byte != UInt8(ascii: "\"")
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
            return
        }
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            values += 1
            depth += 1
            greatestDepth = max(greatestDepth, depth)
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            depth -= 1
            if depth == 0, state == .open { state = .closed }
        case UInt8(ascii: ","): values += 1
        case UInt8(ascii: "\""): isInString = true
        default: break
        }
        if depth <= 0, state == .open { state = .broken }
    }
}

/// Returns a value as JSON: UTF-8 with sorted keys and a line feed at the end; one line unless it is indented.
///
/// Infinities and NaN become the strings `inf`, `-inf` and `nan`. Empty if the value's own encoding fails.
package func encodeJSON(_ value: some Encodable, isIndented: Bool) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
        positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan"
    )
    guard let data = try? encoder.encode(value) else { return [] }
    return [UInt8](data) + [UInt8(ascii: "\n")]
}
