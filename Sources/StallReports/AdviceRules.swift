// The sentences name what to change first, and stay below two lines. The comment above a rule names a stall that looks
// alike. A new rule needs a page in docs/causes, a right case and a near miss in AdviceTests, and a stall, a cured twin
// and a near miss among the scenarios (Scenario+Advice.swift).

extension AdviceRule {
    /// The rules for a cause that is certain or likely, special ones first.
    private static let causes: [AdviceRule] = {
        // No sum: Swift 6.2 cannot type-check one of so many lists in time.
        let lists: [[AdviceRule]] = [
            [signalHandler], deadlocks, pools, network, locks, sleeps, files, children,
            [closing, events, stream, call], computing, [contention, quota, paging],
        ]
        return lists.flatMap(\.self)
    }()

    /// Those for a thread that one task keeps.
    private static let keptThreads: [AdviceRule] = [deadlocks, locks, sleeps, pinned].flatMap(\.self)

    /// All rules but ``look``, which needs no stall of its own.
    package static let all: [AdviceRule] = [causes, pinned, loops, operations].flatMap(\.self)

    static func rules(for facts: AdviceFacts) -> [AdviceRule] {
        switch facts.report.kind {
        case .saturation, .spinning, .modeStarvation, .notRun: loops
        case .overdue: operations + [look]
        // Its thread computes: how the time is shared out among functions does not matter.
        case .pinned where facts.report.pool?.isComputing == true && facts.report.cause != nil: pinned
        case .pinned: (facts.isSure ? keptThreads : []) + [look]
        default: (facts.isSure ? causes : [contention]) + [look]
        }
    }

    /// For a cause that is only possible: the command that would tell.
    static let look = AdviceRule(id: "look", topic: "unknown", causeTopics: [.cpu: "cpu", .sleep: "sleep"]) { facts in
        guard let cause = facts.report.cause else {
            guard facts.report.missingSamplesReason != nil else { return nil }
            // A monitor that is late by more than a moment had no CPU either.
            guard facts.report.monitor.watchdogLateMilliseconds >= 10 else {
                return
                    "Set a lower threshold, so that the watchdog looks while it lasts: this one ended at once after it."
            }
            return "See whether CPUs are short \(facts.again): top -H; vmstat 1, column r. The monitor came late, too."
        }
        if facts.report.kind == .overdue {
            return "See what all tasks wait for \(facts.again): \(facts.tasks)."
        }
        guard [.cpu, .sleep].contains(cause.kind), let tree = facts.tree else {
            return "See what all threads do \(facts.again): \(facts.stacks)."
        }
        let isRepeated = cause.kind == .cpu ? cause.repeatsOtherCall : cause.polls
        if isRepeated || cause.kind == .cpu && cause.otherCall != nil, let place = facts.report.longestWait?.place {
            // With about as much time each, either may be the culprit.
            let run = facts.report.longestRun
            let others = [(facts.report.culprit?.function, facts.culprit), (run?.function, run?.place)]
            let both = others.lazy.compactMap { function, place in
                function.flatMap { facts.runLessOften($0, at: place) }
            }
            let isShared = run != nil && facts.moveWhole == nil && cause.voluntarySwitches > 10
            if isRepeated || isShared, let both = both.first {
                return "\(both) Which parts cost: \(tree)."
            }
            if isRepeated {
                return "Find what runs \(place) so often: no single wait explains it, and what calls it computes, too. "
                    + "Which parts cost: \(tree)."
            }
            if let whole = facts.moveWhole { return "\(whole) Which parts cost: \(tree)." }
            return "Move the wait in \(place) off \(facts.loop). Which other parts cost: \(tree)."
        }
        return "See which parts cost: \(tree)."
    }

    // Silent for the same function where the loop calls it.
    private static let signalHandler = AdviceRule(id: "signalHandler", topic: "signalHandler") { facts in
        guard let handler = facts.report.signalHandler, let place = handler.place ?? facts.culprit else { return nil }
        return "Let the signal handler \(place) only note the signal, and do the work elsewhere: "
            + "a DispatchSource (makeSignalSource) calls code that may wait and lock."
    }
}
