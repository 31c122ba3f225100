/// What a monitor found of stalls that it caused itself, compared with what happened.
public struct MonitorProof: Codable, Sendable, Equatable {
    /// The stalls, in the order in which they were caused.
    package var trials: [Trial] = []
    /// What else is wrong, such as a directory that takes no report: sentences without a period.
    package var faults: [String] = []
    /// The time that the monitor's threads were on a CPU meanwhile, in milliseconds.
    package var cpuMilliseconds = 0.0

    /// A proof with nothing in it yet; with an obstacle one that cannot be made: a sentence without its period.
    package init(obstacle: String? = nil) { faults = obstacle.map { [$0] } ?? [] }

    /// Whether a stall of every kind was found and explained as it was, and nothing else is wrong.
    public var isWhole: Bool {
        faults.isEmpty && trials.allSatisfy(\.faults.isEmpty) && Set(trials.map(\.kind)) == Set(Kind.allCases)
    }

    /// One sentence without its period: how many stalls were found, how late, and what is wrong.
    public var summary: String {
        let right = trials.count(where: \.faults.isEmpty)
        let late = trials.compactMap(\.delayMilliseconds).max()
        let rest = late.map { ", at most \($0.toTenths) ms after the threshold" } ?? ""
        let found = trials.isEmpty ? [] : ["\(right) of \(trials.count) stalls were found as they were\(rest)"]
        return (found + trials.filter { !$0.faults.isEmpty }.map(\.summary) + faults).joined(separator: "; ")
    }

    /// What the captures of its stalls show: which methods work, and that ptrace is refused if a thread that computes was
    /// captured by a signal.
    package var outcomes: [Capabilities.FeatureName: Capabilities.Outcome] {
        var outcomes: [Capabilities.FeatureName: Capabilities.Outcome] = [:]
        for method in trials.compactMap(\.method) {
            outcomes[Capabilities.FeatureName(rawValue: method.rawValue)] = .works()
            if method == .signal { outcomes[.ptrace] = .missing() }
        }
        return outcomes
    }

    package enum Kind: String, Codable, CaseIterable, Sendable {
        case sleep, lock, cpu, pipe

        /// The causes that a report may give: other threads, or a quota, may take the CPU.
        fileprivate var causes: [StallReport.CauseKind] {
            switch self {
            case .sleep: [.sleep]
            case .lock: [.lock]
            case .cpu: [.cpu, .cpuContention, .throttled]
            case .pipe: [.io]
            }
        }
    }

    /// A stall that the monitor caused, and what its report shows.
    package struct Trial: Codable, Sendable, Equatable {
        package let kind: Kind
        /// What the report lacks or says wrongly, with the reason, in sentences without a period; empty if it is right.
        package var faults: [String] = []
        /// The time from the threshold until the first stack was copied, or without one then until the watchdog found the
        /// stall, in milliseconds; `nil` without a report.
        package var delayMilliseconds: Double?
        /// The time for which captures kept the thread from running, in microseconds.
        package var heldMicroseconds = 0.0
        package var method: StallReport.CaptureMethod?

        package init(_ kind: Kind, fault: String? = nil) {
            self.kind = kind
            faults = fault.map { [$0] } ?? []
        }

        /// The kind of stall with its faults, or how it was found: a sentence without its period.
        package var summary: String {
            let found = "\(kind): " + (faults.isEmpty ? "right" : faults.joined(separator: ", "))
            guard let delayMilliseconds else { return found }
            let held = heldMicroseconds > 0 ? ", held for \(heldMicroseconds.whole) us" : ""
            let word = faults.isEmpty ? "" : "found "
            return "\(found), \(word)\(delayMilliseconds.toTenths) ms after the threshold"
                + (method.map { ", captured by \($0.rawValue)" } ?? "") + held
        }
    }
}

extension MonitorProof.Trial {
    /// The largest difference of a duration that counts as none, in milliseconds.
    private static let tolerance = 1.0

    /// Compares the report of a stall with what happened: how long it lasted, and which thread had the lock.
    ///
    /// Without `asksNames` the functions have none.
    package init(
        _ kind: MonitorProof.Kind, _ report: StallReport, milliseconds: Double, owner: Int32, asksNames: Bool = true
    ) {
        self.init(kind)
        // A stack from before the threshold may serve on.
        let first = report.samples.first { $0.isEarly != true && $0.stack != nil }
        let copied = first.map { $0.atMilliseconds - report.thresholdMilliseconds } ?? -1
        delayMilliseconds = copied < 0 ? report.monitor.watchdogLateMilliseconds : copied
        heldMicroseconds = report.samples.reduce(0) { $0 + $1.heldMicroseconds }
        let (found, truth) = (report.durationMilliseconds.toTenths, milliseconds.toTenths)
        if abs(found - truth) > Self.tolerance { add("it took \(truth) ms, and is reported with \(found) ms") }
        judgeStack(report, asksNames)
        judgeCause(report.cause, owner: owner)
    }

    private mutating func judgeStack(_ report: StallReport, _ asksNames: Bool) {
        let samples = report.samples.filter { $0.isValid && $0.stack != nil }
        guard let sample = samples.first(where: \.isComplete) ?? samples.first else {
            return add("there is no stack", report.missingSamplesReason ?? report.samples.compactMap(\.reason).first)
        }
        method = sample.method
        if !sample.isComplete { add("the stack is incomplete", sample.reason) }
        let frames = samples.flatMap { report.provenFrames(ofStack: $0.stack ?? 0) }
        // A mangled name repeats no word: it has a letter in its place.
        let names = frames.map { $0.function ?? $0.symbol }
        guard asksNames, !names.contains(where: { $0?.contains("\(kind)InProof") == true }) else { return }
        guard let nameless = names.firstIndex(of: nil).map({ frames[$0] }) else {
            return add("its function is not on the stack")
        }
        add("its function has no name", nameless.reason ?? nameless.image.flatMap { report.images[$0].reason })
    }

    private mutating func judgeCause(_ cause: StallReport.Cause?, owner: Int32) {
        guard let cause, cause.kind != .unknown else { return add("the cause is not known") }
        guard kind.causes.contains(cause.kind) else { return add("the cause is \(cause.kind.rawValue)") }
        if kind == .lock, cause.lock?.owners.first?.thread.id != owner {
            let other = cause.lock?.owners.first.map { "it is given as thread \($0.thread.id)" }
            add("the lock's owner is not known", other ?? cause.lock?.reason)
        }
        if kind == .pipe, cause.systemCall?.target?.contains("pipe:") != true { add("the pipe is not named") }
    }

    private mutating func add(_ fault: String, _ reason: String? = nil) {
        faults.append(fault + (reason.map { ": \($0)" } ?? ""))
    }
}

extension Double {
    fileprivate var toTenths: Double { (self * 10).rounded() / 10 }
}
