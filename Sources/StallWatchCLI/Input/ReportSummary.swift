import Foundation
import LinuxSupport
import StallReports

/// The part of a report that grouping, filtering and listing need: everything but its stacks.
///
/// Most of a report is stacks. Decoding only this part of 50,000 reports takes a fifth of the time of decoding them whole.
struct ReportSummary: Sendable, Equatable, Decodable {
    private var schemaVersion: Int
    var id: String
    var kind: StallKind
    var state: StallState
    var startedAt: Timestamp
    var durationMilliseconds: Double
    var process: Process
    var metadata: [String: String]
    private var loopPart: Loop
    var fingerprint: String?
    var repeats: Int
    var repeated: StallReport.RepeatedStalls?
    var culprit: Culprit?
    private var causePart: Cause?
    private var contextPart: Context?
    /// The functions on all of its stacks; empty unless requested.
    var functions: [String] = []

    var loop: String { loopPart.label }
    var cause: StallReport.CauseKind? { causePart?.kind }
    /// The label of what the thread was working on, else the task's name.
    var context: String? { contextPart.flatMap { $0.label ?? $0.taskName } }

    private enum CodingKeys: String, CodingKey {
        case schemaVersion, id, kind, state, startedAt, durationMilliseconds, process, metadata, fingerprint, repeats
        case repeated, culprit, loopPart = "loop", causePart = "cause", contextPart = "context"
    }

    struct Process: Sendable, Hashable, Decodable {
        var name: String
        var pid: Int32
        var startedAt: Timestamp?
        var startTicks: UInt64?
        var bootID: String?
        var pidNamespace: String?
        var hostname: String
    }

    private struct Loop: Sendable, Equatable, Decodable {
        var label: String
    }

    /// The function that a developer should inspect first.
    struct Culprit: Sendable, Hashable, Codable {
        var function: String
        var image: String?
        var file: String?
        var line: Int?
    }

    private struct Cause: Sendable, Equatable, Decodable {
        var kind: StallReport.CauseKind
    }

    private struct Context: Sendable, Equatable, Decodable {
        var label: String?
        var taskName: String?
    }
}

extension ReportSummary {
    /// The same part of a whole report.
    init(_ report: StallReport) {
        let process = report.process
        self.init(
            schemaVersion: report.schemaVersion, id: report.id, kind: report.kind, state: report.state,
            startedAt: report.startedAt, durationMilliseconds: report.durationMilliseconds,
            process: Process(
                name: process.name, pid: process.pid, startedAt: process.startedAt, startTicks: process.startTicks,
                bootID: process.bootID, pidNamespace: process.pidNamespace, hostname: process.hostname
            ),
            metadata: report.metadata, loopPart: Loop(label: report.loop.label), fingerprint: report.fingerprint,
            repeats: report.repeats, repeated: report.repeated,
            culprit: report.culprit.map {
                Culprit(function: $0.function, image: $0.image, file: $0.file, line: $0.line)
            },
            causePart: report.cause.map { Cause(kind: $0.kind) },
            contextPart: report.context.map { Context(label: $0.label, taskName: $0.taskName) },
            functions: report.frames.compactMap(\.function)
        )
    }

    /// Reads a report's fields from its JSON; ``functions`` only on request.
    init(json: [UInt8], functions: Bool) throws(UnreadableReport) {
        do {
            let data = Data(json)
            self = try JSONDecoder().decode(ReportSummary.self, from: data)
            if functions { self.functions = try JSONDecoder().decode(Stacks.self, from: data).functions }
        } catch {
            // The failure may result from a newer schema, which makes the better message.
            if let newer = StallReport.newerVersion(in: json) { throw UnreadableReport(newer) }
            let fault = (error as? DecodingError)?.fault(in: json) ?? "\(error)"
            throw UnreadableReport("this is not a stall report: \(fault)")
        }
        if let newer = StallReport.newerVersion(schemaVersion) { throw UnreadableReport(newer) }
        if let fault { throw UnreadableReport("this is not a stall report: $.\(fault)") }
    }

    private struct Stacks: Decodable {
        var frames: [Frame]?

        struct Frame: Decodable {
            var function: String?
        }

        var functions: [String] { (frames ?? []).compactMap(\.function) }
    }

    /// Why its values cannot be used, with their place: sums over many reports rely on these bounds.
    private var fault: String? {
        func isDuration(_ value: Double) -> Bool { value >= 0 && value < StallReport.maximumMilliseconds }
        if !ReportIdentifier.isIdentifier(id) { return "id: an id is a UUID in lowercase" }
        if !isDuration(durationMilliseconds) { return "durationMilliseconds: the duration is negative or too large" }
        if let repeated, !isDuration(repeated.totalMilliseconds) || !isDuration(repeated.greatestMilliseconds) {
            return "repeated: a duration is negative or too large"
        }
        if repeats < 0 { return "repeats: the count is negative" }
        return repeats > StallReport.maximumCount ? "repeats: the count is too large" : nil
    }
}

/// A stall with the stalls that its report stands for, too.
protocol CountedStall {
    var durationMilliseconds: Double { get }
    var repeats: Int { get }
    var repeated: StallReport.RepeatedStalls? { get }
}

extension StallReport: CountedStall {}
extension ReportSummary: CountedStall {}

extension CountedStall {
    /// What the report and the stalls that it stands for lasted, in milliseconds.
    ///
    /// Reports of older versions do not say what the others lasted. They are taken to have lasted as long as the report's own.
    var totalMilliseconds: Double {
        durationMilliseconds + (repeated?.totalMilliseconds ?? durationMilliseconds * Double(repeats))
    }
    /// The longest of these stalls, in milliseconds.
    var greatestMilliseconds: Double { max(durationMilliseconds, repeated?.greatestMilliseconds ?? 0) }
    var isEstimated: Bool { repeats > 0 && repeated == nil }
}

extension ReportSummary {
    /// Whether its process ran on this host since this boot, and has ended; of one in another PID namespace that is not
    /// known, as of one whose report does not name its own.
    var processIsGone: Bool {
        guard let startTicks = process.startTicks, let bootID = process.bootID, bootID == Self.bootID,
            process.hostname == Self.hostname, let namespace = process.pidNamespace, namespace == Self.pidNamespace
        else { return false }
        return !ProcessIdentity(pid: process.pid, startTicks: startTicks, bootID: bootID).isAlive
    }

    private static let bootID = readSmallFile("/proc/sys/kernel/random/boot_id").map(firstLine)
    private static let pidNamespace = readLink("/proc/self/ns/pid")
    static let hostname = readSmallFile("/proc/sys/kernel/hostname").map(firstLine)
}
