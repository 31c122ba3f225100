import Dispatch
import Foundation
import StallWatch
import Synchronization

/// What a report says against what it should say.
struct Judgment {
    /// What is wrong; empty for a right report.
    private(set) var mistakes: [String] = []

    init(_ report: StallReport, of stall: LabeledStall) {
        if let culprit = report.culprit {
            let name = stall.culprits.first { Self.isFunction(culprit.function, named: $0) }
            if let name {
                checkPlace(culprit, of: name, in: stall.file)
            } else {
                mistakes.append(
                    "culprit \(stall.culprits.joined(separator: " or ")), got \(culprit.function) "
                        + "(\(Self.place(culprit)))"
                )
            }
        } else {
            mistakes.append("culprit \(stall.culprits[0]), got none")
        }
        let kind = report.cause?.kind
        if kind.map(stall.causes.contains) != true {
            let expected = stall.causes.map(\.rawValue).sorted().joined(separator: " or ")
            mistakes.append("cause \(expected), got \(kind?.rawValue ?? "none")")
        }
        let lock = (try? JSONDecoder().decode(LockDocument.self, from: Data(report.jsonData())))?.cause.lock.kind
        if stall.lock != nil, lock != stall.lock {
            mistakes.append(
                "lock \(stall.lock ?? "none"), got \(lock ?? "none"): "
                    + (report.cause?.summary ?? "")
            )
        }
    }

    private mutating func checkPlace(_ culprit: StallReport.Culprit, of name: String, in file: String) {
        guard let lines = SourceFunction.lines(of: name, in: file) else {
            mistakes.append("\(name) is not in \(file)")
            return
        }
        if culprit.file != file || culprit.line.map(lines.contains) != true {
            mistakes.append(
                "\(name) at \(Self.base(file)):\(lines.lowerBound)-\(lines.upperBound), got \(Self.place(culprit))"
            )
        }
    }

    /// Whether `function`, as reports write it, is `name` or a closure in it.
    private static func isFunction(_ function: String, named name: String) -> Bool {
        guard !function.hasPrefix("merged ") else { return false }
        return function.split(separator: " ").contains { word in
            guard word.hasPrefix(name) || word.contains("." + name) else { return false }
            guard let range = word.range(of: name) else { return false }
            return word[range.upperBound...].first.map { "(<.".contains($0) } ?? true
        }
    }

    private static func place(_ culprit: StallReport.Culprit) -> String {
        guard let file = culprit.file else { return "no line" }
        return "\(base(file)):\(culprit.line ?? 0)"
    }

    private static func base(_ path: String) -> Substring { path.split(separator: "/").last ?? "" }
}

/// The part of a report's JSON that names the lock.
private struct LockDocument: Decodable {
    struct Cause: Decodable { var lock: Lock }
    struct Lock: Decodable { var kind: String }

    var cause: Cause
}

/// A stall with what its report has to say.
struct LabeledStall: Sendable {
    enum Loop: String, Sendable {
        case main, nio, queue
    }

    /// What it calls into.
    var label: String
    /// The functions that may be blamed, by base name: one, except where the optimizer merges functions.
    var culprits: [String]
    var file: String
    var causes: Set<StallReport.CauseKind>
    /// The kind of the lock, as in the report's JSON.
    var lock: String?
    var loop: Loop
    /// Runs on the loop's thread, or makes the loop run what stalls.
    var body: @Sendable () throws -> Void

    /// Labels a stall that calls into `label` and runs `body` on the loop's thread.
    ///
    /// `culprit` is the base name of the function to blame. A release build may merge it with an identical function and
    /// blame `merged`, its caller, instead. Each of `causes` is right; `lock` is the kind for the cause `lock`.
    init(
        _ label: String, culprit: String, orCaller merged: String? = nil, _ causes: Set<StallReport.CauseKind>,
        lock: String? = nil, on loop: Loop = .main, file: String = #filePath,
        _ body: @escaping @Sendable () throws -> Void
    ) {
        self.label = label
        culprits = [culprit] + (merged.map { [$0] } ?? [])
        self.file = file
        self.causes = causes
        self.lock = lock
        self.loop = loop
        self.body = body
    }

    /// What is true of the stall's report, as a line of JSON.
    func truth(of report: StallReport) -> Data {
        var truth: [String: Any] = ["report": report.id, "case": label, "culprits": culprits]
        truth["kinds"] = causes.map(\.rawValue)
        truth["lock"] = lock
        return ((try? JSONSerialization.data(withJSONObject: truth)) ?? Data()) + Data("\n".utf8)
    }
}

extension Set<StallReport.CauseKind> {
    /// Computing; on a busy machine the thread may wait for a CPU most of the time.
    static let computing: Self = [.cpu, .cpuContention, .throttled]
    static let waitingForLock: Self = [.lock]
    static let sleeping: Self = [.sleep]
    /// Reading files, from the page cache or from a disk.
    static let readingFiles: Self = [.cpu, .cpuContention, .throttled, .io, .paging]
}

/// The finished reports of a monitor, for one thread that waits for them.
///
/// `@unchecked Sendable`: `reports` is only used while `condition` is locked.
final class ReportInbox: @unchecked Sendable {
    private let condition = NSCondition()
    private var reports: [StallReport] = []
    /// No stall here is shorter, in seconds.
    private static let shortestStall = 0.18

    func add(_ report: StallReport) {
        condition.lock()
        reports.append(report)
        condition.broadcast()
        condition.unlock()
    }

    /// Takes the first report of the loop with that label; `nil` if none comes within `seconds`.
    ///
    /// One of a stall that was over before `begin` comes late: a busy machine has made an earlier turn long.
    func next(of label: String, since begin: Date, within seconds: Double) -> StallReport? {
        let end = Date(timeIntervalSinceNow: seconds)
        condition.lock()
        defer { condition.unlock() }
        while true {
            let index = reports.firstIndex { report in
                let length = report.durationMilliseconds / 1_000
                // A shorter one is of another turn, which waited for a CPU.
                return report.loop.label == label && length > Self.shortestStall
                    && report.startedAt.date.addingTimeInterval(length) > begin
            }
            if let index { return reports.remove(at: index) }
            guard condition.wait(until: end) else { return nil }
        }
    }

    func removeAll() {
        condition.lock()
        reports.removeAll()
        condition.unlock()
    }
}

/// A function's place in its source.
enum SourceFunction {
    /// The lines of the function or computed property `name` in the file at `path`: from the one that declares it to the
    /// closing brace with the same indentation.
    static func lines(of name: String, in path: String) -> ClosedRange<Int>? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        // An initializer, a deinitializer and a subscript have no name of their own.
        let isNamed = !["init", "deinit", "subscript"].contains(name)
        let declarations =
            isNamed
            ? ["func \(name)(", "func \(name)<", "var \(name):", "int \(name)(", "long \(name)("]
            : ["    \(name)(", "    \(name) {"]
        // Of several, the last: a protocol declares its requirement before.
        guard
            let first = lines.lastIndex(where: { line in
                line.hasSuffix("{") && declarations.contains { line.contains($0) }
            })
        else { return nil }
        let indentation = lines[first].prefix { $0 == " " }
        guard let last = lines[first...].firstIndex(where: { $0 == indentation + "}" }) else { return nil }
        return first + 1...last + 1
    }
}

/// How long each stall takes: three times the threshold, so that all samples but the last are within it.
let stallLength = DispatchTimeInterval.milliseconds(320)
let stallMicroseconds: UInt32 = 320_000

private let finished = Atomic<Int>(0)

/// Work after a blocking call: without it, a release build makes a jump of the call, and the caller's frame is gone.
@inline(__always)
func finish() {
    finished.add(1, ordering: .relaxed)
}

/// Keeps `value` from being optimized away.
@inline(never)
@_optimize(none)
func use<Value>(_ value: Value) {}

/// Threads of Foundation's for blocking others.
enum Thread {
    static func detach(_ body: @escaping @Sendable () -> Void) {
        Foundation.Thread.detachNewThread(body)
    }
}
