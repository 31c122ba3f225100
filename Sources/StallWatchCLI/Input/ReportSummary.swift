import Foundation
import LinuxSupport
import StallReports
import StallSymbols

/// A report without its stacks: decoding this part of 50,000 reports takes a fifth of the time of whole ones.
struct ReportSummary: Sendable, Equatable {
    private var schemaVersion: Int
    var id: String
    var kind: StallKind
    var state: StallState
    var startedAt: Timestamp
    var durationMilliseconds: Double
    var process: StallReport.ProcessDescription
    var metadata: [String: String]
    var loop: String
    var fingerprint: String?
    var repeats: Int
    var repeated: StallReport.RepeatedStalls?
    var culprit: Culprit?
    var cause: StallReport.CauseKind?
    var causeWord: String { StallReport.causeWord(cause, kind) }
    /// How long others waited for the loop, in milliseconds, for each of the stalls that it stands for: 0 if nothing did,
    /// `nil` if it is not known.
    var harmMilliseconds: Double?
    /// Whether the watchdog looked only when the turn was over.
    var isMissed = false
    /// The label of what the thread was working on, else the task's name.
    var context: String?
    /// Why it stalled and what to try, a line each; `nil` unless requested, because it takes the whole report.
    var explanation: String?
    /// The functions on all of its stacks; empty unless requested.
    var functions: [String] = []
    /// The functions that called the culprit, the nearest first; empty unless requested.
    var callers: [String] = []

    struct Culprit: Sendable, Hashable, Codable {
        var function: String
        var image: String?
        var file: String?
        var line: Int?
    }

    struct Extras: Sendable {
        static let key = CodingUserInfoKey(rawValue: "stallwatch.extras")

        var functions = false
        var callers: @Sendable (_ fingerprint: String?) -> Bool = { _ in false }
    }
}

extension ReportSummary: Decodable {
    private enum Key: String, CodingKey {
        case schemaVersion, id, kind, state, startedAt, durationMilliseconds, process, metadata, fingerprint, repeats
        case repeated, culprit, loop, cause, context, missingSamplesReason, victims, callout
    }

    private struct LabeledLoop: Decodable {
        var label: String
        var kind: StallReport.LoopKind
        var nesting: Int
    }

    private struct KnownCause: Decodable {
        var kind: StallReport.CauseKind
    }

    private struct NamedContext: Decodable {
        var label: String?
        var taskName: String?
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Key.self)
        schemaVersion = try fields.decode(Int.self, forKey: .schemaVersion)
        id = try fields.decode(String.self, forKey: .id)
        kind = try fields.decode(StallKind.self, forKey: .kind)
        state = try fields.decode(StallState.self, forKey: .state)
        startedAt = try fields.decode(Timestamp.self, forKey: .startedAt)
        durationMilliseconds = try fields.decode(Double.self, forKey: .durationMilliseconds)
        process = try fields.decode(StallReport.ProcessDescription.self, forKey: .process)
        metadata = try fields.decode([String: String].self, forKey: .metadata)
        let loop = try fields.decode(LabeledLoop.self, forKey: .loop)
        self.loop = loop.label
        fingerprint = try fields.decodeIfPresent(String.self, forKey: .fingerprint)
        repeats = try fields.decode(Int.self, forKey: .repeats)
        repeated = try fields.decodeIfPresent(StallReport.RepeatedStalls.self, forKey: .repeated)
        culprit = try fields.decodeIfPresent(Culprit.self, forKey: .culprit)
        cause = try fields.decodeIfPresent(KnownCause.self, forKey: .cause)?.kind
        let callout = try fields.decodeIfPresent(StallReport.Callout.self, forKey: .callout)
        harmMilliseconds = try fields.decodeIfPresent(StallReport.Victims.self, forKey: .victims)?.harmMilliseconds(
            omitsItems: StallReport.omitsItems(callout, of: loop.kind, nesting: loop.nesting))
        isMissed = fields.contains(.missingSamplesReason)
        let context = try fields.decodeIfPresent(NamedContext.self, forKey: .context)
        self.context = context?.label ?? context?.taskName
        guard let key = Extras.key, let extras = decoder.userInfo[key] as? Extras else { return }
        let needsCallers = extras.callers(fingerprint)
        guard extras.functions || needsCallers else { return }
        // A caller is an addition: without it the report still counts.
        let stacks = extras.functions ? try SampledStacks(from: decoder) : try? SampledStacks(from: decoder)
        if extras.functions { functions = stacks?.functions ?? [] }
        if needsCallers, let culprit { callers = stacks?.callers(of: culprit.function) ?? [] }
    }
}

private struct SampledStacks: Decodable {
    private static let mostCallers = 16

    private var samples: [Sample]?
    private var stacks: [[Int]]?
    private var frames: [NamedFrame]?

    private struct Sample: Decodable {
        var stack: Int?
        var weightMilliseconds: Double?
    }

    private struct NamedFrame: Decodable {
        var function: String?
        var isInApp: Bool?
        var isRuntimeFrame: Bool?
    }

    var functions: [String] { (frames ?? []).compactMap(\.function) }

    /// Returns the callers of the culprit that samples for most of the time show, the nearest first; of equal ones, the first.
    func callers(of culprit: String) -> [String] {
        let samples = samples ?? []
        let chains = samples.map { callers(of: culprit, in: $0) }
        var weights: [String: Double] = [:]
        for (sample, chain) in zip(samples, chains) {
            if let nearest = chain.first { weights[nearest, default: 0] += sample.weightMilliseconds ?? 0 }
        }
        let most = weights.values.max()
        return chains.first { $0.first.flatMap { weights[$0] } == most } ?? []
    }

    private func callers(of culprit: String, in sample: Sample) -> [String] {
        guard let frames, let stacks, let stack = sample.stack, stacks.indices.contains(stack) else { return [] }
        let functions = stacks[stack].filter(frames.indices.contains).map { frames[$0] }
        guard let place = functions.firstIndex(where: { $0.function == culprit }) else { return [] }
        let callers = functions[(place + 1)...].lazy.filter { $0.isInApp == true && $0.isRuntimeFrame != true }
            .compactMap(\.function).filter { $0 != culprit }
        return Array(callers.prefix(Self.mostCallers))
    }
}

extension ReportSummary {
    init(_ report: StallReport) {
        self.init(
            schemaVersion: report.schemaVersion, id: report.id, kind: report.kind, state: report.state,
            startedAt: report.startedAt, durationMilliseconds: report.durationMilliseconds,
            process: report.process, metadata: report.metadata, loop: report.loop.label,
            fingerprint: report.fingerprint,
            repeats: report.repeats, repeated: report.repeated,
            culprit: report.culprit.map {
                Culprit(function: $0.function, image: $0.image, file: $0.file, line: $0.line)
            },
            cause: report.cause?.kind, harmMilliseconds: report.harmMilliseconds,
            isMissed: report.missingSamplesReason != nil,
            context: report.context.flatMap { $0.label ?? $0.taskName },
            functions: report.frames.compactMap(\.function)
        )
    }

    init(json: [UInt8], _ extras: Extras = Extras()) throws(UnreadableReport) {
        self = try UnreadableReport.decode(ReportSummary.self, from: json) { decoder in
            if let key = Extras.key { decoder.userInfo[key] = extras }
        }
        try check()
    }

    /// Throws if a newer version has written the report, or its values cannot be used.
    func check() throws(UnreadableReport) {
        if let newer = StallReport.newerVersion(schemaVersion) { throw UnreadableReport(newer) }
        if let fault { throw UnreadableReport("this is not a stall report: $.\(fault)") }
    }

    /// Why its values cannot be used, with their place: sums over many reports rely on these bounds.
    private var fault: String? {
        func isDuration(_ value: Double) -> Bool { value >= 0 && value < StallReport.maximumMilliseconds }
        if !ReportIdentifier.isIdentifier(id) { return "id: an id is a UUID in lowercase" }
        if !isDuration(durationMilliseconds) { return "durationMilliseconds: the duration is negative or too large" }
        if let repeated, !isDuration(repeated.totalMilliseconds) || !isDuration(repeated.greatestMilliseconds) {
            return "repeated: a duration is negative or too large"
        }
        if let harmMilliseconds, !isDuration(harmMilliseconds) {
            return "victims.totalWaitMilliseconds: the duration is negative or too large"
        }
        if repeats < 0 { return "repeats: the count is negative" }
        return repeats > StallReport.maximumCount ? "repeats: the count is too large" : nil
    }
}

protocol CountedStall {
    var durationMilliseconds: Double { get }
    var repeats: Int { get }
    var repeated: StallReport.RepeatedStalls? { get }
}

extension StallReport: CountedStall {}
extension ReportSummary: CountedStall {}

extension CountedStall {
    /// In milliseconds, with the stalls that it stands for: as long as its own where an older version does not say.
    var totalMilliseconds: Double {
        durationMilliseconds + (repeated?.totalMilliseconds ?? durationMilliseconds * Double(repeats))
    }
    var greatestMilliseconds: Double { max(durationMilliseconds, repeated?.greatestMilliseconds ?? 0) }
    var isEstimated: Bool { repeats > 0 && repeated == nil }
}

extension ReportSummary {
    /// Whether its process ran on this host since this boot, and has ended; of one in another PID namespace that is not
    /// known, as of one whose report does not name its own, and of one that /proc may hide.
    var processIsGone: Bool {
        ProcessIdentity(process)?.isAlive == false && !InspectedProcess.isHidden(process.pid)
    }
}
