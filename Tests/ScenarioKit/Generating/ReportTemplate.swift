import StallReports

/// A report's JSON with places for what differs between stalls of one kind; encoding a report takes some hundred times
/// as long as filling in its template.
struct ReportTemplate {
    struct Occurrence {
        var id: String
        var startedAt: Timestamp
        var milliseconds: Double
        var repeats: Int
        var hostname: String
        var bootID: String
        var pid: Int
        var startTicks: Int
        var processStartedAt: Timestamp
        var version: String
        var turn: Int
        var line: Int
    }

    // The placeholders: values that no report has otherwise.
    static let id = "@id@"
    static let hostname = "@hostname@"
    static let bootID = "@bootID@"
    static let version = "@version@"
    static let startedAt = Timestamp(microsecondsSince1970: 4_000_000_000_000_001)
    static let processStartedAt = Timestamp(microsecondsSince1970: 4_000_000_000_000_002)
    static let pid: Int32 = 2_147_480_001
    static let startTicks: UInt64 = 900_000_000_000_002
    static let turn: UInt64 = 900_000_000_000_003
    static let repeats = 900_000_000_000_004
    static let line = 900_000_000_000_005
    static let milliseconds = 900_000_000_006.5
    static let onCPU = 900_000_000_007.5
    static let runQueue = 900_000_000_008.5
    static let blocked = 900_000_000_009.5
    /// The weight of a sample, up to the tenth.
    static func weight(_ index: Int) -> Double { 900_000_000_010.5 + Double(index) }

    private enum Piece {
        case text([UInt8])
        case value(Value)
    }

    private typealias Value = (Occurrence) -> String

    private let pieces: [Piece]

    init(_ report: StallReport, shares: (onCPU: Double, runQueue: Double)) {
        let samples = Double(max(report.samples.count, 1))
        func part(_ share: Double) -> Value { { Self.number($0.milliseconds * share) } }
        var values: [(text: String, value: Value)] = [
            (Self.id, \.id), (Self.hostname, \.hostname), (Self.bootID, \.bootID), (Self.version, \.version),
            (Self.startedAt.description, \.startedAt.description),
            (Self.processStartedAt.description, \.processStartedAt.description), ("\(Self.pid)", \.pid.description),
            ("\(Self.startTicks)", \.startTicks.description), ("\(Self.turn)", \.turn.description),
            ("\(Self.repeats)", \.repeats.description), ("\(Self.line)", \.line.description),
            ("\(Self.milliseconds)", \.milliseconds.description), ("\(Self.onCPU)", part(shares.onCPU)),
            ("\(Self.runQueue)", part(shares.runQueue)),
            ("\(Self.blocked)", part(1 - shares.onCPU - shares.runQueue)),
        ]
        for index in report.samples.indices { values.append(("\(Self.weight(index))", part(1 / samples))) }
        pieces = Self.pieces(report.jsonLine(), values)
    }

    private static func pieces(_ json: [UInt8], _ values: [(text: String, value: Value)]) -> [Piece] {
        let wanted = values.map { (text: Array($0.text.utf8), value: $0.value) }
        let first = Set(wanted.map { $0.text[0] })
        var pieces: [Piece] = []
        var begin = 0
        var place = 0
        json.withUnsafeBufferPointer { json in
            while place < json.count {
                if first.contains(json[place]),
                    let found = wanted.first(where: { json[place...].starts(with: $0.text) })
                {
                    pieces.append(.text(Array(json[begin..<place])))
                    pieces.append(.value(found.value))
                    place += found.text.count
                    begin = place
                } else {
                    place += 1
                }
            }
        }
        return pieces + [.text(Array(json[begin...]))]
    }

    /// The JSON of one stall, as in an NDJSON file.
    func json(_ occurrence: Occurrence) -> [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(1 << 14)
        for piece in pieces {
            switch piece {
            case .text(let bytes): json += bytes
            case .value(let text): json += text(occurrence).utf8
            }
        }
        return json
    }

    /// A number of milliseconds to the nanosecond.
    private static func number(_ milliseconds: Double) -> String {
        "\((milliseconds * 1_000_000).rounded() / 1_000_000)"
    }
}
