import Foundation
import StallWatch

/// The parts of a report that are judged.
struct ReportedStall: Equatable, Sendable {
    /// The report's file.
    var file: String
    var kind = StallReport.Kind.stall
    /// The loop's label.
    var loop: String
    var loopKind = StallReport.LoopKind.runLoop
    var nesting = 0
    var mode: String?
    var callout: StallReport.Callout?
    var milliseconds: Double
    /// By how much the stall may have begun earlier.
    ///
    /// Not zero for a loop with a heartbeat.
    var startUncertainty = 0.0
    /// The culprit.
    var function: String?
    /// The source file of the culprit.
    var sourceFile: String?
    /// The line of the culprit in ``sourceFile``.
    var line: Int?
    /// The kind of the cause.
    var cause: String?
    /// The name of the thread that holds the awaited lock.
    var owner: String?
    /// The owner's activity: `running`, or the name of its system call.
    var ownerDoes: String?
    /// The kind of the awaited lock.
    var lock: StallReport.LockKind?
    /// The blocking system call with its target.
    var call: String?
    /// The parts of the stall's time, if the report has a cause.
    var split: Split?
    /// The number of different stacks in its samples.
    var distinctStacks = 1

    /// The parts of a stall's time, in milliseconds.
    struct Split: Equatable, Sendable {
        var onCPU, runQueue, blocked, uncertainty: Double
    }
}

extension ReportedStall {
    init(_ report: StallReport, file: String) {
        self.init(
            file: file, kind: report.kind, loop: report.loop.label, loopKind: report.loop.kind,
            nesting: report.loop.nesting, mode: report.loop.mode, callout: report.callout,
            milliseconds: report.durationMilliseconds, startUncertainty: report.startUncertaintyMilliseconds ?? 0,
            function: report.culprit?.function, sourceFile: report.culprit?.file, line: report.culprit?.line,
            cause: report.cause?.kind.rawValue,
            owner: report.cause?.lock?.owners.first?.thread.name,
            ownerDoes: report.cause?.lock?.owners.first.flatMap { $0.isRunning ? "running" : $0.systemCall?.name },
            lock: report.cause?.lock?.kind,
            call: (report.cause?.systemCall).map { $0.name + "(" + ($0.target ?? "") + ")" },
            split: report.cause.map(Split.init),
            distinctStacks: Set(report.samples.compactMap(\.stack)).count
        )
    }
}

extension ReportedStall {
    /// Reads the report `name` in `directory`.
    static func read(_ name: String, in directory: String) throws(DemoFailure) -> ReportedStall {
        let file = directory + (directory.hasSuffix("/") ? "" : "/") + name
        guard let data = FileManager.default.contents(atPath: file) else {
            throw DemoFailure(
                .inputOutput, "the report \(file) cannot be read: leave the files alone while the demo runs"
            )
        }
        do throws(StallWatchError) {
            return ReportedStall(try StallReport(jsonData: [UInt8](data)), file: file)
        } catch {
            throw DemoFailure(.inputOutput, "the report \(file) is damaged: \(error)")
        }
    }
}

extension ReportedStall.Split {
    init(_ cause: StallReport.Cause) {
        self.init(
            onCPU: cause.onCPUMilliseconds, runQueue: cause.runQueueMilliseconds, blocked: cause.blockedMilliseconds,
            uncertainty: cause.uncertaintyMilliseconds
        )
    }
}
