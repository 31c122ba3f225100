import Foundation
import LinuxSupport
import StallReports

/// The part of a report that grouping, filtering and listing need: everything but its stacks.
///
/// Most of a report is stacks. Decoding only this part of 50,000 reports takes a fifth of the time of decoding them whole.
struct ReportSummary: Sendable, Equatable {
    var id: String
    var kind: StallReport.Kind
    var state: StallReport.State
    var startedAt: Timestamp
    var durationMilliseconds: Double
    var process: Process
    var metadata: [String: String]
    var loop: String
    var loopKind: StallReport.LoopKind
    var callout: StallReport.Callout?
    var fingerprint: String?
    var repeats: Int
    var repeated: StallReport.RepeatedStalls?
    var culprit: Culprit?
    var cause: StallReport.CauseKind?
    /// The label of what the thread was working on, else the task's name.
    var context: String?
    /// The functions on all of its stacks; empty unless requested.
    var functions: [String] = []

    struct Process: Sendable, Hashable, Decodable {
        var name: String
        var pid: Int32
        var startedAt: Timestamp?
        var startTicks: UInt64?
        var bootID: String?
        var hostname: String
    }

    /// The function that a developer should inspect first.
    struct Culprit: Sendable, Hashable, Codable {
        var function: String
        var image: String?
        var file: String?
        var line: Int?
    }
}

extension ReportSummary {
    /// The same part of a whole report.
    init(_ report: StallReport) {
        let process = report.process
        self.init(
            id: report.id, kind: report.kind, state: report.state, startedAt: report.startedAt,
            durationMilliseconds: report.durationMilliseconds,
            process: Process(
                name: process.name, pid: process.pid, startedAt: process.startedAt, startTicks: process.startTicks,
                bootID: process.bootID, hostname: process.hostname
            ),
            metadata: report.metadata, loop: report.loop.label, loopKind: report.loop.kind, callout: report.callout,
            fingerprint: report.fingerprint, repeats: report.repeats, repeated: report.repeated,
            culprit: report.culprit.map {
                Culprit(function: $0.function, image: $0.image, file: $0.file, line: $0.line)
            },
            cause: report.cause?.kind, context: report.context?.name, functions: report.frames.compactMap(\.function)
        )
    }
}

extension ReportSummary {
    /// Reads a report's fields from its JSON; ``functions`` only on request.
    init(json: [UInt8], functions: Bool) throws(UnreadableReport) {
        do {
            let data = Data(json)
            self = try JSONDecoder().decode(ReportSummary.self, from: data)
            if functions { self.functions = try JSONDecoder().decode(Stacks.self, from: data).functions }
        } catch let error as UnreadableReport {
            throw error
        } catch let error as DecodingError {
            throw UnreadableReport("this is not a stall report: \(ReportFault(error, in: json))")
        } catch {
            throw UnreadableReport("this is not a stall report: \(error)")
        }
    }

    private struct Stacks: Decodable {
        var frames: [Frame]?

        struct Frame: Decodable {
            var function: String?
        }

        var functions: [String] { (frames ?? []).compactMap(\.function) }
    }
}

extension ReportSummary: Decodable {
    private enum Field: String, CodingKey {
        case schemaVersion, id, kind, state, startedAt, durationMilliseconds, process, metadata, loop, callout
        case fingerprint, repeats, repeated, culprit, cause, context
    }

    private struct Loop: Decodable {
        var label: String
        var kind: StallReport.LoopKind
    }

    private struct Cause: Decodable {
        var kind: StallReport.CauseKind
    }

    private struct Context: Decodable {
        var label: String?
        var taskName: String?
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Field.self)
        let version = try fields.decode(Int.self, forKey: .schemaVersion)
        if let newer = StallReport.newerVersion(version) { throw UnreadableReport(newer) }
        let loop = try fields.decode(Loop.self, forKey: .loop)
        let context = try fields.decodeIfPresent(Context.self, forKey: .context)
        self.init(
            id: try fields.decode(String.self, forKey: .id),
            kind: try fields.decode(StallReport.Kind.self, forKey: .kind),
            state: try fields.decode(StallReport.State.self, forKey: .state),
            startedAt: try fields.decode(Timestamp.self, forKey: .startedAt),
            durationMilliseconds: try fields.decode(Double.self, forKey: .durationMilliseconds),
            process: try fields.decode(Process.self, forKey: .process),
            metadata: try fields.decode([String: String].self, forKey: .metadata),
            loop: loop.label, loopKind: loop.kind,
            callout: try fields.decodeIfPresent(StallReport.Callout.self, forKey: .callout),
            fingerprint: try fields.decodeIfPresent(String.self, forKey: .fingerprint),
            repeats: try fields.decode(Int.self, forKey: .repeats),
            repeated: try fields.decodeIfPresent(StallReport.RepeatedStalls.self, forKey: .repeated),
            culprit: try fields.decodeIfPresent(Culprit.self, forKey: .culprit),
            cause: try fields.decodeIfPresent(Cause.self, forKey: .cause)?.kind,
            context: context?.label ?? context?.taskName
        )
        guard ReportIdentifier.isIdentifier(id) else {
            throw DecodingError.dataCorruptedError(
                forKey: .id, in: fields, debugDescription: "an id is a UUID in lowercase")
        }
        // Sums over many reports rely on these bounds.
        let durations = [
            (durationMilliseconds, Field.durationMilliseconds, "the"),
            (repeated?.totalMilliseconds ?? 0, .repeated, "a"),
            (repeated?.greatestMilliseconds ?? 0, .repeated, "a"),
        ]
        for (value, field, article) in durations where !(value >= 0 && value < StallReport.maximumMilliseconds) {
            throw DecodingError.dataCorruptedError(
                forKey: field, in: fields, debugDescription: "\(article) duration is negative or too large")
        }
        guard repeats >= 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .repeats, in: fields, debugDescription: "the count is negative")
        }
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
    /// Whether its process ran on this host since this boot, and has ended; most containers have another host name.
    var processIsGone: Bool {
        guard let startTicks = process.startTicks, let bootID = process.bootID, bootID == Self.bootID,
            process.hostname == Self.hostname
        else { return false }
        return !ProcessIdentity(pid: process.pid, startTicks: startTicks, bootID: bootID).isAlive
    }

    private static let bootID = readSmallFile("/proc/sys/kernel/random/boot_id").map(firstLine)
    static let hostname = readSmallFile("/proc/sys/kernel/hostname").map(firstLine)
}
