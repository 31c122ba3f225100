import Dispatch
import Glibc
import LinuxSupport
import StallReports
import StallWatch
import Synchronization
import Testing

/// The one monitor of a test process, which all traits and checks share, because a loop is watched by one monitor.
///
/// It runs from the first scope until the process ends, with the lowest threshold of each loop's current scopes.
final class SharedMonitor: Sendable {
    static let shared = SharedMonitor()

    /// The longest that the end of a test waits for a stall to end and its report to be finished.
    private static let settlingTime: UInt64 = 10_000_000_000
    /// The longest wait for what is asked of the loops that no thread runs.
    private static let askingTime: UInt64 = 1_000_000_000
    private static let idleThreshold = StallMonitor.Configuration.maximumThreshold
    /// From when on a thread of the task pool is pinned: the scopes whose loops have the pool judge by their own limits.
    private static let pinnedThreshold = Duration.milliseconds(100)
    /// The loop that stays watched, because each heartbeat's first item costs the next test.
    private static let kept = WatchedLoop.main.label
    /// The most scopes that are remembered after their end.
    private static let maximumPast = 64

    private struct State {
        var monitor: StallMonitor?
        var scopes: [ObjectIdentifier: StallScope] = [:]
        /// Those that ended last: a stall may be one that they have left behind.
        var past: [StallScope] = []
        var watched: [String: (loop: LoopWatch, threshold: Duration)] = [:]
        /// The labels of loops that no thread ran: each is an issue once a process.
        var notRun: Set<String> = []
        var freeProbes: [LoopProbe] = []
        var probes = 0
    }
    private let state = Mutex(State())

    /// Begins to watch the loops of a scope; throws if the monitor cannot start or a loop cannot be watched.
    func enter(_ scope: StallScope) throws(StallWatchError) {
        try state.withLock { state throws(StallWatchError) in
            for loop in scope.loops { try Self.watch(loop, &state) }
            state.scopes[ObjectIdentifier(scope)] = scope
            do throws(StallWatchError) {
                try Self.adjust(scope.labels, &state)
            } catch {
                // A limit out of range: the others' thresholds are still right.
                state.scopes[ObjectIdentifier(scope)] = nil
                throw error
            }
        }
    }

    /// Begins to watch the loops of a scope, on the main queue if its thread is not known yet.
    func enterFromTask(_ scope: StallScope) async throws(StallWatchError) {
        if scope.labels.contains(Self.kept), state.withLock({ $0.watched[Self.kept] == nil }) {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let once = OneShotTransfer(continuation)
                DispatchQueue.main.async { [self] in
                    // The scope's own call reports the error.
                    try? state.withLock { state throws(StallWatchError) in try Self.watch(.main, &state) }
                    once.take()?.resume()
                }
                // A main actor that is stalled already must not keep the other tests from running.
                DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { once.take()?.resume() }
            }
        }
        try enter(scope)
    }

    /// What is known at the end of a scope.
    struct Ending: Sendable {
        var findings: [StallFinding]
        /// Whether its loops had come back, and all reports of their stalls were finished.
        var isSettled: Bool

        /// Why the stalls are not known, of loops with these labels; `nil` if they are.
        func problem(_ labels: Set<String>) -> String? {
            guard !isSettled else { return nil }
            let (seconds, loops) = (SharedMonitor.settlingTime / 1_000_000_000, labels.sorted().joined(separator: ", "))
            return "stalls are not known here: \(seconds) s after the end of the code, \(loops) had not come back, "
                + "or a report was not finished. It may be due to another test."
        }
    }

    /// Ends a scope: waits for the reports of its stalls, stops watching for it, and returns the stalls.
    func leave(_ scope: StallScope) async -> Ending {
        scope.end()
        var isSettled = true
        if scope.mayHaveStalled {
            // On a thread of its own: the pool of tasks may be what stalls.
            let (settled, delays) = await withCheckedContinuation {
                (continuation: CheckedContinuation<(Bool, [String: UInt64]), Never>) in
                do throws(SystemError) {
                    try WorkerThread(name: "stallwatch-test") { [self] in
                        let settled = settle(scope)
                        continuation.resume(returning: (settled, unrunTimers(of: scope)))
                    }.detach()
                } catch {
                    continuation.resume(returning: (settle(scope), [:]))
                }
            }
            isSettled = settled
            for (label, delay) in delays {
                warnIfNotRun(
                    label,
                    "A timer of the run loop \(label) was due for \(delay / 1_000_000) ms when the test ended, and no "
                        + "thread ran the loop.")
            }
        }
        return Ending(findings: remove(scope), isSettled: isSettled)
    }

    func leaveBlocking(_ scope: StallScope) -> Ending {
        scope.end()
        let isSettled = !scope.mayHaveStalled || settle(scope)
        return Ending(findings: remove(scope), isSettled: isSettled)
    }

    func takeProbe() -> LoopProbe {
        state.withLock { state in
            if let probe = state.freeProbes.popLast() { return probe }
            state.probes += 1
            return LoopProbe(label: state.probes == 1 ? "checked code" : "checked code \(state.probes)")
        }
    }

    func giveBack(_ probe: LoopProbe) { state.withLock { $0.freeProbes.append(probe) } }

    // MARK: - Loops and thresholds

    private static func watch(_ loop: WatchedLoop, _ state: inout State) throws(StallWatchError) {
        guard state.watched[loop.label] == nil else { return }
        let watch = try monitor(&state).watch(loop, threshold: idleThreshold, isServed: true)
        state.watched[loop.label] = (watch, idleThreshold)
    }

    private static func monitor(_ state: inout State) throws(StallWatchError) -> StallMonitor {
        if let monitor = state.monitor { return monitor }
        var configuration = StallMonitor.Configuration(
            outputs: [.closure { SharedMonitor.shared.receive($0) }],
            detection: .init(saturationThreshold: nil, pinnedThreshold: pinnedThreshold),
            repeats: .init(maximumReportsPerMinute: 10_000, reportsEveryRepeat: true)
        )
        configuration.onEvent = { if case .began(let report) = $0 { SharedMonitor.shared.warnIfNotRun(report) } }
        // Tests block their threads, which matters to those that watch the pool.
        configuration.detection.watchesPoolWithMain = false
        // With STALLWATCH_REPORTS, every report is also written to a directory, as a baseline is made of them.
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        state.monitor = monitor
        return monitor
    }

    private func settle(_ scope: StallScope) -> Bool {
        guard let monitor = state.withLock({ $0.monitor }) else { return true }
        return monitor.settle(scope.labels, until: monotonicNow() &+ Self.settlingTime)
    }

    private func unrunTimers(of scope: StallScope) -> [String: UInt64] {
        let (monitor, labels) = state.withLock { ($0.monitor, scope.labels.subtracting($0.notRun)) }
        return monitor?.unrunTimers(of: labels, until: monotonicNow() &+ Self.askingTime) ?? [:]
    }

    private func remove(_ scope: StallScope) -> [StallFinding] {
        state.withLock { state in
            state.scopes[ObjectIdentifier(scope)] = nil
            // The loop of a check of one thread has no other one beside it.
            if scope.function != nil { state.past.append(scope) }
            if state.past.count > Self.maximumPast { state.past.removeFirst() }
            // Only a threshold out of range is an error, and each was accepted when its scope began.
            try? Self.adjust(scope.labels, &state)
        }
        return scope.takeFindings()
    }

    private static func adjust(_ labels: Set<String>, _ state: inout State) throws(StallWatchError) {
        for label in labels {
            guard let (loop, current) = state.watched[label] else { continue }
            let lowest = state.scopes.values.filter { $0.labels.contains(label) }.map(\.threshold).min()
            if lowest == nil, label != kept {
                loop.stop()
                state.watched[label] = nil
                continue
            }
            let threshold = lowest ?? idleThreshold
            guard current != threshold else { continue }
            try loop.setThreshold(threshold)
            state.watched[label] = (loop, threshold)
        }
    }

    // MARK: - Reports

    private func warnIfNotRun(_ report: StallReport) {
        guard report.kind == .notRun, report.isOfThisProcess else { return }
        warnIfNotRun(report.loop.label, "\(report.headline). \(report.why ?? "")")
    }

    /// Warns of a loop that no thread runs: a test that waits for its timer has no end.
    private func warnIfNotRun(_ label: String, _ sentence: String) {
        let scopes = state.withLock { state -> [StallScope] in
            let scopes = state.scopes.values.filter { $0.labels.contains(label) && !$0.isReplaced }
            return scopes.isEmpty || !state.notRun.insert(label).inserted ? [] : scopes
        }
        guard let location = scopes.map(\.location).min() else { return }
        let names = Set(scopes.compactMap(\.function?.name)).sorted().joined(separator: ", ")
        let text =
            "\(sentence) On Linux the main run loop does not run in Swift Testing: "
            + "use Task.sleep, a clock or DispatchSource.makeTimerSource. It may be due to an earlier test; now runs: \(names)."
        Issue.record(Comment(rawValue: text), severity: .warning, sourceLocation: location)
    }

    private func receive(_ report: StallReport) {
        // The report directory may have reports that an earlier process left.
        guard report.isOfThisProcess, !report.kind.isPeriod else { return }
        let end = report.startedAt.microsecondsSince1970 + Int64(report.durationMilliseconds * 1_000)
        let scopes = state.withLock { state in
            (Array(state.scopes.values) + state.past).filter { scope in
                scope.labels.contains(report.loop.label) && scope.began.microsecondsSince1970 <= end
                    && scope.ended.map { $0 >= report.earliestStart } ?? true
            }
        }
        let tests = Dictionary(grouping: scopes, by: \.root).values.map { scopes in
            (scopes: scopes, candidate: StallAttribution.Candidate(scopes))
        }
        guard !tests.isEmpty else { return }
        let attribution = StallAttribution(report, among: tests.map(\.candidate))
        let time = CodeTime(report)
        for (index, part) in attribution.parts {
            for scope in tests[index].scopes where !scope.isReplaced {
                guard let severity = scope.budget.severity(of: time.part(part.share)) else { continue }
                let finding = StallFinding(
                    report: part.report, time: time.part(part.share), severity: severity, budget: scope.budget
                ).excused(by: scope.baseline)
                guard !scope.add(finding), tests[index].candidate.hasLeft, let test = scope.function?.name else {
                    continue
                }
                finding.recordForRun(leftBy: test, elsewhere: scope.location)
                break
            }
        }
        guard let (part, candidates) = attribution.unknown else { return }
        let possible = candidates.flatMap { tests[$0].scopes }.filter { !$0.isReplaced }
        let budgets = possible.map(\.budget)
        guard let severity = StallBudget.severity(of: time.part(part.share), inOneOf: budgets),
            let strictest = budgets.min(by: { $0.shortest < $1.shortest })
        else { return }
        var finding = StallFinding(
            report: part.report, time: time.part(part.share), severity: severity, budget: strictest)
        for scope in possible { finding = finding.excused(by: scope.baseline) }
        finding.recordForRun(tests: possible.compactMap(\.function?.name), elsewhere: possible.map(\.location).min())
    }
}

extension StallAttribution.Candidate {
    init(_ scopes: [StallScope]) {
        let ends = scopes.map(\.ended)
        self.init(
            function: scopes.lazy.compactMap(\.function).first,
            began: scopes.map(\.began).min() ?? Timestamp(microsecondsSince1970: 0),
            ended: ends.contains(nil) ? nil : ends.compactMap(\.self).max(),
            hasLeft: scopes.allSatisfy(\.hasLeft)
        )
    }
}
