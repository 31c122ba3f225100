import StallReports

/// A report's JSON with places for what differs between stalls of one kind.
///
/// Encoding a report takes some hundred times as long as filling in its template.
struct ReportTemplate {
    /// The forms of a report's JSON.
    enum Form {
        /// As in a file of its own.
        case indented
        /// As in an NDJSON file.
        case line
    }

    /// What differs between stalls of one kind.
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

    private enum Slot {
        case id, hostname, bootID, version, startedAt, processStartedAt, pid, startTicks, turn, repeats, line
        case milliseconds, onCPU, runQueue, blocked, weight
    }

    private enum Piece {
        case text([UInt8])
        case slot(Slot)
    }

    private let pieces: [Form: [Piece]]
    private let samples: Double
    private let shares: (onCPU: Double, runQueue: Double)

    init(_ report: StallReport, shares: (onCPU: Double, runQueue: Double)) {
        samples = Double(max(report.samples.count, 1))
        self.shares = shares
        var slots: [(text: String, slot: Slot)] = [
            (Self.id, .id), (Self.hostname, .hostname), (Self.bootID, .bootID), (Self.version, .version),
            (Self.startedAt.description, .startedAt), (Self.processStartedAt.description, .processStartedAt),
            ("\(Self.pid)", .pid), ("\(Self.startTicks)", .startTicks), ("\(Self.turn)", .turn),
            ("\(Self.repeats)", .repeats), ("\(Self.line)", .line), ("\(Self.milliseconds)", .milliseconds),
            ("\(Self.onCPU)", .onCPU), ("\(Self.runQueue)", .runQueue), ("\(Self.blocked)", .blocked),
        ]
        for index in report.samples.indices { slots.append(("\(Self.weight(index))", .weight)) }
        pieces = [.indented: Self.pieces(report.jsonData(), slots), .line: Self.pieces(report.jsonLine(), slots)]
    }

    /// Cuts the text at the placeholders.
    private static func pieces(_ json: [UInt8], _ slots: [(text: String, slot: Slot)]) -> [Piece] {
        let wanted = slots.map { (text: Array($0.text.utf8), slot: $0.slot) }
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
                    pieces.append(.slot(found.slot))
                    place += found.text.count
                    begin = place
                } else {
                    place += 1
                }
            }
        }
        return pieces + [.text(Array(json[begin...]))]
    }

    /// The JSON of one stall.
    func json(_ occurrence: Occurrence, _ form: Form) -> [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(1 << 14)
        for piece in pieces[form] ?? [] {
            switch piece {
            case .text(let bytes): json += bytes
            case .slot(let slot): json += text(slot, occurrence).utf8
            }
        }
        return json
    }

    private func text(_ slot: Slot, _ occurrence: Occurrence) -> String {
        let milliseconds = occurrence.milliseconds
        return switch slot {
        case .id: occurrence.id
        case .hostname: occurrence.hostname
        case .bootID: occurrence.bootID
        case .version: occurrence.version
        case .startedAt: occurrence.startedAt.description
        case .processStartedAt: occurrence.processStartedAt.description
        case .pid: "\(occurrence.pid)"
        case .startTicks: "\(occurrence.startTicks)"
        case .turn: "\(occurrence.turn)"
        case .repeats: "\(occurrence.repeats)"
        case .line: "\(occurrence.line)"
        case .milliseconds: "\(milliseconds)"
        case .onCPU: Self.number(milliseconds * shares.onCPU)
        case .runQueue: Self.number(milliseconds * shares.runQueue)
        case .blocked: Self.number(milliseconds * (1 - shares.onCPU - shares.runQueue))
        case .weight: Self.number(milliseconds / samples)
        }
    }

    /// A number of milliseconds to the nanosecond.
    private static func number(_ milliseconds: Double) -> String {
        "\((milliseconds * 1_000_000).rounded() / 1_000_000)"
    }
}
