import Glibc
import LinuxSupport
import StallReports
import StallSymbols
import Synchronization
import Testing

struct StallFinding: Sendable {
    /// The report; of a stall of several tests, only one test's samples.
    var report: StallReport
    var time: CodeTime
    var severity: Issue.Severity
    var budget: StallBudget
    var isExcused = false
    /// The last day on which a baseline excused it; `nil` if none did.
    var expired: CalendarDay?

    var sentence: String {
        var text = report.title
        if let culprit = report.culprit { text += " in \(culprit.function)" }
        let machine = report.durationMilliseconds - time.most
        if machine >= 1, machine * 10 >= report.durationMilliseconds {
            text += ", \(machine.whole) ms of them without a CPU"
        }
        text += " (limit: \(limit))"
        if let cause = report.cause?.summary { text += ". \(cause)" }
        if !text.hasSuffix(".") { text += "." }
        if let expired { text += " The baseline excused it until \(expired)." }
        return text
    }

    private var limit: String {
        guard severity == .warning, let warn = budget.warn else { return "\(budget.fail.whole) ms" }
        return "\(min(warn, budget.fail).whole) ms for a warning, \(budget.fail.whole) ms for a failure"
    }

    /// Records the stall as an issue of the current test, `elsewhere` if its function is not in the package.
    func record(elsewhere location: SourceLocation) {
        if !isExcused { record(sentence, at: report.culpritLocation ?? location) }
    }

    /// Records the stall as an issue of the test run: it belongs to one of some tests.
    ///
    /// Called on a thread of the monitor, where no test is current. Swift Testing then records it once for the run and once
    /// for each group of `.serialized` tests that runs at this time.
    func recordForRun(tests: [String], elsewhere location: SourceLocation?) {
        recordForRun(Self.remark(onOneOf: tests), elsewhere: location)
    }

    static func remark(onOneOf tests: [String]) -> String {
        let names = Set(tests).sorted()
        let which =
            names.count == 1
            ? "one of the cases of \(names[0]) that ran then, but nothing"
            : "one of the tests that ran then (\(names.joined(separator: ", "))), but no stack"
        return "It belongs to \(which) shows to which: run them one after another to know."
    }

    /// Records the stall as an issue of the test run: the check of its test had ended before the stall had.
    func recordForRun(leftBy test: String, elsewhere location: SourceLocation) {
        recordForRun(
            "It belongs to \(test), and went on after the check had ended: let the code wait for what it starts.",
            elsewhere: location)
    }

    private func recordForRun(_ text: String, elsewhere location: SourceLocation?) {
        guard !isExcused, let location = report.culpritLocation ?? location else { return }
        record("\(sentence) \(text)", at: location)
    }

    private func record(_ text: String, at location: SourceLocation) {
        Issue.record(Comment(rawValue: text), severity: severity, sourceLocation: location)
        let name = report.fileName
        Attachment.record(String(decoding: report.jsonData(), as: UTF8.self), named: name, sourceLocation: location)
        Attachment.record(
            StallText(report: report).text, named: name.replacing(".json", with: ".txt"), sourceLocation: location)
    }
}

extension StallReport {
    /// The place of the function to inspect first; `nil` if it is unknown or not in the app's own package.
    var culpritLocation: SourceLocation? {
        guard let culprit, let file = culprit.file, let line = culprit.line, line > 0,
            let frame = frames.first(where: { $0.isInApp && $0.function == culprit.function && $0.file == file })
        else { return nil }
        let path = file.split(separator: "/")
        guard let name = path.last else { return nil }
        // A file ID is the module and the file's name. The directory stands for the module of a function in C.
        let module = frame.symbol.flatMap(SwiftModule.of) ?? path.dropLast().last.map(String.init) ?? "C"
        return SourceLocation(fileID: "\(module)/\(name)", filePath: file, line: line, column: 1)
    }
}

extension StallFinding {
    /// Returns the finding with what a baseline says about it: that it is excused, or was excused until a day.
    func excused(by baseline: StallBaseline?) -> StallFinding {
        guard let baseline else { return self }
        let today = CalendarDay(Timestamp(wallClockNanoseconds: wallClockNow()))
        var finding = self
        finding.isExcused = isExcused || baseline.excuses(report.fingerprint, on: today)
        finding.expired = expired ?? baseline.expired(report.fingerprint, on: today)?.expires
        return finding
    }
}

enum BaselineFiles {
    /// The environment variable with the path of the baseline of tests that name none.
    static let variable = "STALLWATCH_BASELINE"
    /// A larger file is no baseline.
    private static let maximumBytes = 16 << 20

    private static let known = Mutex<[String: Result<StallBaseline, StallWatchError>]>([:])

    /// Returns the baseline at a path, or the one that the environment names; `nil` if there is none.
    static func baseline(at path: String?) throws(StallWatchError) -> StallBaseline? {
        guard let path = path ?? environmentPath(variable), !path.isEmpty else { return nil }
        return try known.withLock { known in
            if let result = known[path] { return result }
            let result = Result { () throws(StallWatchError) in try read(path) }
            known[path] = result
            return result
        }.get()
    }

    private static func read(_ path: String) throws(StallWatchError) -> StallBaseline {
        guard let bytes = AtomicFile.read(path, limit: maximumBytes) else {
            throw StallWatchError(
                .invalidConfiguration,
                "the baseline \(path) cannot be read: create it with `stallwatch baseline update --file \(path)`, "
                    + "or name another file; relative paths start at the tests' working directory"
            )
        }
        do {
            return try StallBaseline(jsonData: bytes)
        } catch {
            throw StallWatchError(.invalidConfiguration, "the baseline \(path) is damaged: \(error.message)")
        }
    }
}

struct StallText {
    private static let maximumSamples = 3

    let report: StallReport

    var text: String {
        var lines = [report.headline]
        if let cause = report.cause {
            lines.append("\(cause.kind.rawValue) (\(cause.confidence.rawValue)): \(cause.summary)")
            lines.append(
                "on CPU \(cause.onCPUMilliseconds.whole) ms, waiting for a CPU \(cause.runQueueMilliseconds.whole) ms, "
                    + "blocked \(cause.blockedMilliseconds.whole) ms")
        }
        if let victims = report.victimsInWords { lines.append("\(victims).") }
        if let advice = report.advice { lines.append("Try: \(advice.text) See \(advice.command).") }
        if let fingerprint = report.fingerprint { lines.append("fingerprint \(fingerprint)") }
        for owner in report.cause?.lock?.owners ?? [] {
            lines += ["", "Lock owner: \(owner.thread.inWords)"]
            if let stack = owner.stack { lines += frames(of: stack) }
        }
        var shown: Set<Int> = []
        // The samples with the most time, in the order of their times.
        let shares = report.sampleShares
        let main = Set(report.samples.indices.sorted { shares[$0] > shares[$1] }.prefix(Self.maximumSamples))
        for (index, sample) in report.samples.enumerated() where main.contains(index) {
            if let stack = sample.stack, shown.insert(stack).inserted {
                lines += ["", "Stack at \(sample.atMilliseconds.whole) ms"] + frames(of: stack)
            }
            for group in sample.workers ?? [] {
                guard let stack = group.stack, shown.insert(stack).inserted else { continue }
                lines += ["", "Workers: \(group.threads.count)"] + frames(of: stack)
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A stack's frames, innermost first, with marks for the app's; without runtime frames, and what runs a test.
    private func frames(of stack: Int) -> [String] {
        let frames = report.stacks[stack].prefix { !report.frames[$0].runsTest }
        return frames.enumerated().compactMap { number, index in
            let frame = report.frames[index]
            guard frame.isRuntimeFrame != true, frame.compilerGenerated != .macro else { return nil }
            let image = frame.image.map { report.images[$0].name }
            let name = frame.function ?? "\(image ?? "?")+\(frame.offset)"
            var line = "\(frame.isInApp ? ">" : " ") \(number) \(name)"
            if let file = frame.file {
                line += "  \(file)\(frame.line.map { ":\($0)" } ?? "")"
            } else if let image {
                line += "  \(image)"
            }
            if frame.kind == .asyncCaller { line += "  (async caller)" }
            return line
        }
    }
}

/// The stalls that a test may have: the durations from which a stall is a warning, and from which it fails the test.
struct StallBudget: Sendable, Equatable {
    /// The duration from which a stall is a warning, in milliseconds; `nil` for no warnings.
    var warn: Double?
    /// The duration from which a stall fails the test, in milliseconds.
    var fail: Double

    init(warn: Duration? = nil, fail: Duration) {
        self.warn = warn.map { $0 / .milliseconds(1) }
        self.fail = fail / .milliseconds(1)
    }

    var shortest: Double { min(warn ?? fail, fail) }

    /// How severe a stall is; it fails the test only if it is certain that it is long enough.
    func severity(of time: CodeTime) -> Issue.Severity? {
        if time.least >= fail { return .error }
        guard let warn else { return nil }
        return time.most >= warn ? .warning : nil
    }

    /// How severe a stall of one of several tests is: an error if it is one for each, a warning if it is any for one.
    static func severity(of time: CodeTime, inOneOf budgets: [StallBudget]) -> Issue.Severity? {
        let severities = budgets.map { $0.severity(of: time) }
        if !severities.isEmpty, severities.allSatisfy({ $0 == .error }) { return .error }
        return severities.contains { $0 != nil } ? .warning : nil
    }
}
