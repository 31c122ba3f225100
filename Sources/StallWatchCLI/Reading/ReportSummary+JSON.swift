import StallReports

extension ReportSummary {
    /// Reads a report's fields from its JSON and passes over the rest, which has to be JSON all the same.
    ///
    /// - Parameters:
    ///   - json: UTF-8.
    ///   - functions: Whether the functions on its stacks are wanted.
    /// - Throws: What is wrong with it, in words.
    init(json: [UInt8], functions: Bool) throws(UnreadableReport) {
        guard json.isUTF8 else { throw UnreadableReport("this is not a stall report: it is not UTF-8 text") }
        self.init()
        var reader = FieldReader(json, functions: functions)
        do {
            try reader.read(into: &self)
        } catch {
            throw UnreadableReport(fault: error, path: reader.path)
        }
        if let version = reader.schemaVersion, version > StallReport.currentSchemaVersion {
            throw UnreadableReport(newerVersion: version)
        }
        if let missing = reader.missing { throw UnreadableReport("this is not a stall report: \(missing) is missing") }
    }
}

/// Why something is passed over as a report, in words.
struct UnreadableReport: Error, Equatable {
    let reason: String

    init(_ reason: String) { self.reason = reason }

    fileprivate init(fault: JSONFault, path: String) {
        let place = path.isEmpty ? "the document" : path
        self.init("this is not a stall report: \(place): \(fault.reason), at byte \(fault.position)")
    }

    fileprivate init(newerVersion version: Int) {
        self.init(
            "the report has schema version \(version), and this version reads up to "
                + "\(StallReport.currentSchemaVersion): use a newer StallWatch"
        )
    }
}

/// Reads the fields of one report.
private struct FieldReader {
    private var scanner: JSONScanner
    private let functions: Bool
    /// The field that is being read.
    private(set) var path = ""
    private(set) var schemaVersion: Int?
    private var found: Set<String> = []

    /// Without these there is nothing to say.
    private static let required = [
        "schemaVersion", "id", "kind", "state", "startedAt", "durationMilliseconds", "process", "metadata", "loop",
        "repeats",
    ]

    init(_ json: [UInt8], functions: Bool) {
        scanner = JSONScanner(json)
        self.functions = functions
    }

    /// The first required field that was not there.
    var missing: String? { Self.required.first { !found.contains($0) } }

    mutating func read(into summary: inout ReportSummary) throws(JSONFault) {
        try scanner.beginObject()
        while let key = try scanner.nextKey() {
            path = ".\(key)"
            if try field(key, into: &summary) { found.insert(key) }
            path = ""
        }
        try scanner.end()
    }

    /// Returns whether the field has a value.
    private mutating func field(_ key: String, into summary: inout ReportSummary) throws(JSONFault) -> Bool {
        if try scanner.null() { return false }
        switch key {
        case "schemaVersion": schemaVersion = try scanner.integer()
        case "id": summary.id = try scanner.string()
        case "kind": summary.kind = .init(rawValue: try scanner.string())
        case "state": summary.state = .init(rawValue: try scanner.string())
        case "startedAt": summary.startedAt = try time()
        case "durationMilliseconds": summary.durationMilliseconds = try duration()
        case "process": summary.process = try process()
        case "metadata": summary.metadata = try metadata()
        case "loop": try loop(into: &summary)
        case "callout": summary.callout = .init(rawValue: try scanner.string())
        case "fingerprint": summary.fingerprint = try scanner.string()
        case "repeats": summary.repeats = try count()
        case "culprit": summary.culprit = try culprit()
        case "cause": summary.cause = try cause()
        case "frames" where functions: summary.functions = try frames()
        default: try scanner.skipValue()
        }
        return true
    }

    private mutating func time() throws(JSONFault) -> Timestamp {
        scanner.skipBlanks()
        let position = scanner.position
        let text = try scanner.string()
        guard let time = Timestamp(text) else {
            throw JSONFault(position: position, reason: "\"\(text)\" is not a time like 2026-11-21T08:00:00.123456Z")
        }
        return time
    }

    private mutating func duration() throws(JSONFault) -> Double {
        let value = try scanner.number()
        guard value >= 0, value < StallReport.maximumMilliseconds else {
            throw JSONFault(position: scanner.position, reason: "a duration is negative or too large")
        }
        return value
    }

    private mutating func count() throws(JSONFault) -> Int {
        let value: Int = try scanner.integer()
        guard value >= 0 else { throw JSONFault(position: scanner.position, reason: "a count is negative") }
        return value
    }

    private mutating func process() throws(JSONFault) -> ReportSummary.Process {
        var process = ReportSummary.Process()
        try scanner.beginObject()
        while let key = try scanner.nextKey() {
            if try scanner.null() { continue }
            switch key {
            case "name": process.name = try scanner.string()
            case "pid": process.pid = try scanner.integer()
            case "startedAt": process.startedAt = try time()
            case "startTicks": process.startTicks = try scanner.integer()
            case "bootID": process.bootID = try scanner.string()
            case "hostname": process.hostname = try scanner.string()
            default: try scanner.skipValue()
            }
        }
        return process
    }

    private mutating func metadata() throws(JSONFault) -> [String: String] {
        var metadata: [String: String] = [:]
        try scanner.beginObject()
        while let key = try scanner.nextKey() { metadata[key] = try scanner.string() }
        return metadata
    }

    private mutating func loop(into summary: inout ReportSummary) throws(JSONFault) {
        try scanner.beginObject()
        while let key = try scanner.nextKey() {
            switch key {
            case "label": summary.loop = try scanner.string()
            case "kind": summary.loopKind = .init(rawValue: try scanner.string())
            default: try scanner.skipValue()
            }
        }
    }

    private mutating func culprit() throws(JSONFault) -> ReportSummary.Culprit {
        var culprit = ReportSummary.Culprit()
        try scanner.beginObject()
        while let key = try scanner.nextKey() {
            if try scanner.null() { continue }
            switch key {
            case "function": culprit.function = try scanner.string()
            case "image": culprit.image = try scanner.string()
            case "file": culprit.file = try scanner.string()
            case "line": culprit.line = try scanner.integer()
            default: try scanner.skipValue()
            }
        }
        return culprit
    }

    private mutating func cause() throws(JSONFault) -> StallReport.CauseKind? {
        var kind: StallReport.CauseKind?
        try scanner.beginObject()
        while let key = try scanner.nextKey() {
            if key == "kind" { kind = .init(rawValue: try scanner.string()) } else { try scanner.skipValue() }
        }
        return kind
    }

    private mutating func frames() throws(JSONFault) -> [String] {
        var functions: [String] = []
        try scanner.beginArray()
        while try scanner.nextElement() {
            try scanner.beginObject()
            while let key = try scanner.nextKey() {
                if key == "function", try !scanner.null() {
                    functions.append(try scanner.string())
                } else if key != "function" {
                    try scanner.skipValue()
                }
            }
        }
        return functions
    }
}

extension [UInt8] {
    /// Whether it is text.
    fileprivate var isUTF8: Bool {
        // Most reports are ASCII, which is told faster.
        isASCII || String(validating: self, as: UTF8.self) != nil
    }
}
