import Foundation
import TestSupport
import Testing

@testable import StallReports

// The stalls of which rules say what to do.

extension AdviceTests {
    /// A stall of `load()`; a function of the app has no image's name before `!`.
    struct Stall: CustomTestStringConvertible {
        var kind = StallReport.CauseKind.io
        var call: StallReport.SystemCall?
        var lock: StallReport.Lock?
        /// What `load()` called, innermost first.
        var inner: [String] = []
        var isInTask = false
        var confidence = StallReport.Confidence.certain
        var share: Double?
        var kernelShare: Double?
        var majorFaults: UInt64 = 0
        var pagedFile: String?
        var loop = StallReport.LoopKind.runLoop
        var reportKind = StallKind.stall
        var activity: StallReport.Activity?
        /// What an overdue operation waited for, in `fetch()`.
        var waits: [StallReport.WaitKind] = []
        var pool: StallReport.Pool?
        /// What runs around `load()`, and around the function of the lock's owner.
        var outer: String?
        var ownersOuter: String?
        /// What a signal interrupted, whose handler called `load()`.
        var interrupted: String?
        var competitors: StallReport.Competitors?
        var usableProcessors: StallReport.UsableProcessors?
        var onCPU = 1.0
        var callout: StallReport.Callout?

        var testDescription: String { "\(kind.rawValue) \(call?.description ?? "") \(inner)" }

        func report() throws -> StallReport {
            var report = try StallReport.literal()
            report.kind = reportKind
            if let callout { report.callout = callout }
            report.activity = activity
            report.waits =
                waits.isEmpty
                ? nil
                : waits.map { kind in
                    var wait = StallReport.Wait(kind: kind, task: 7)
                    (wait.function, wait.file, wait.line) = ("fetch()", "/src/Feed.swift", 9)
                    return wait
                }
            report.loop = .init(label: "main", kind: loop, turn: 1, nesting: 0, thread: .init(id: 10))
            report.culprit = .init(function: "load()", file: "/src/Store.swift", line: 12, share: share)
            let names = ["app", "libc.so.6", "libpng16.so.16", "libFoundationEssentials.so", "libsqlite3.so.0"]
            report.images = names.map {
                .init(name: $0, path: "/\($0)", baseAddress: "0x0")
            }
            report.frames = inner.map { name in
                let parts = name.split(separator: "!").map(String.init)
                let image = parts.count > 1 ? report.images.firstIndex { $0.name.hasPrefix(parts[0]) } : 0
                let isOfLoop = name.contains("CFRunLoop") || name.contains("__CFRUNLOOP")
                let symbol = parts.first == "regex" ? "$s17_StringProcessing5RegexV" : isOfLoop ? parts.last : nil
                var frame = StallReport.Frame(
                    image: image ?? 1, offset: "0x1", function: parts.last, symbol: symbol, isInApp: parts.count == 1,
                    kind: .code)
                frame.isDependency = parts.first == "package" ? true : nil
                return frame
            }
            func frame(_ image: Int, _ function: String, _ file: String? = nil, _ line: Int? = nil) -> StallReport.Frame
            {
                .init(
                    image: image, offset: .init(UInt64(report.frames.count + 2)), function: function, file: file,
                    line: line, isInApp: image == 0, kind: .code)
            }
            report.frames.append(frame(0, "load()", "/src/Store.swift", 12))
            if let interrupted {
                report.frames.append(.init(image: 1, offset: "0x1000", isInApp: false, kind: .signal))
                report.frames.append(frame(0, interrupted, "/src/Work.swift", 3))
            }
            report.frames.append(frame(1, isInTask ? "swift_job_run" : "main"))
            if let pool { (report.kind, report.pool) = (.pinned, pool) }
            func runtime(_ symbol: String) -> StallReport.Frame {
                var runtime = frame(1, symbol)
                runtime.symbol = symbol
                return runtime
            }
            if let outer { report.frames.append(runtime(outer)) }
            let own = Array(report.frames.indices)
            // The stack of the lock's owner.
            report.frames.append(frame(0, "save()", "/src/Disk.swift", 7))
            if let ownersOuter { report.frames.append(runtime(ownersOuter)) }
            report.stacks = [own, Array(report.frames.indices.dropFirst(own.count))]
            report.samples = [
                .init(
                    atMilliseconds: 250, stack: 0, isValid: true, isComplete: true, heldMicroseconds: 0,
                    captureMicroseconds: 0)
            ]
            report.cause = .init(
                kind: kind, summary: "", confidence: confidence, onCPUMilliseconds: onCPU, runQueueMilliseconds: 1,
                blockedMilliseconds: 1, uncertaintyMilliseconds: 0, kernelShare: kernelShare, minorFaults: 0,
                majorFaults: majorFaults, voluntarySwitches: 0, involuntarySwitches: 0, competitors: competitors,
                usableProcessors: usableProcessors, pagedFile: pagedFile, systemCall: call, lock: lock)
            if activity != nil { report.cause = nil }
            return report
        }
    }

    static func call(
        _ name: String, _ target: String? = nil, _ peers: [StallReport.Peer]? = nil, or missing: String? = nil
    ) -> StallReport.SystemCall {
        .init(number: 0, name: name, target: target, peers: peers, missingPeersReason: missing)
    }

    static func lock(_ kind: StallReport.LockKind, _ owners: [StallReport.LockOwner], isDeadlock: Bool = false)
        -> StallReport.Lock
    {
        var lock = StallReport.Lock(kind: kind, isDeadlock: isDeadlock, owners: owners)
        if kind == .swiftTaskStatus { lock.label = "91 \"dns\"" }
        return lock
    }

    static func owner(
        _ id: Int32 = 11, stack: Int? = 1, isRunning: Bool = false, call: StallReport.SystemCall? = nil,
        waitsFor: StallReport.LockKind? = nil, inversion: StallReport.PriorityInversion? = nil,
        waitedForCPU: Double? = nil
    ) -> StallReport.LockOwner {
        var owner = StallReport.LockOwner(
            thread: .init(id: id), stack: stack, isRunning: isRunning, systemCall: call, waitsFor: waitsFor,
            priorityInversion: inversion)
        owner.time = waitedForCPU.map {
            .init(observedMilliseconds: 452, onCPUMilliseconds: isRunning ? 452 - $0 : 0, runQueueMilliseconds: $0)
        }
        if waitsFor == .swiftTaskStatus { owner.waitsForLabel = "91 \"dns\"" }
        return owner
    }

    static func activity(
        descriptor: String? = nil, isEmpty: Bool? = nil, awaited: String? = nil, isTimerDue: Bool? = nil,
        isNotRun: Bool? = nil
    ) -> StallReport.Activity {
        var activity = StallReport.Activity(turnsPerSecond: 100)
        (activity.readyDescriptor, activity.isModeEmpty) = (descriptor, isEmpty)
        (activity.awaitedMode, activity.isTimerDue, activity.isNotRun) = (awaited, isTimerDue, isNotRun)
        return activity
    }

    static func spin(_ activity: StallReport.Activity) -> Stall {
        Stall(reportKind: .spinning, activity: activity)
    }

    static func overdue(_ kind: StallReport.CauseKind, _ waits: StallReport.WaitKind...) -> Stall {
        Stall(kind: kind, loop: .operation, reportKind: .overdue, waits: waits)
    }

    static let childWrites = StallReport.Peer(
        role: .child, pid: 9, name: "gzip", systemCall: "write", target: "pipe:[4]")
    static let childWaits = StallReport.Peer(role: .child, pid: 9, name: "gzip", state: "R")
    static let waitUntilExit = "$s10Foundation7ProcessC13waitUntilExityyF"
    static let cat = StallReport.Peer(role: .writer, pid: 9, name: "cat")
    static let own = StallReport.Peer(role: .writer, pid: 1, isThisProcess: true)
}
