extension StallReport {
    /// Whether the loop that is not run is that of a main thread that has given itself to libdispatch, in dispatch_main(3).
    var hasNoMainThread: Bool {
        guard kind == .notRun, let stack = culpritStack?.index else { return false }
        return provenFrames(ofStack: stack).contains { $0.isOfC("dispatch_sig_thread") }
    }

    /// How a loop used its time while it was saturated, spun, let a mode wait or was not run, when the monitor last sampled it.
    package struct Activity: Codable, Sendable, Equatable {
        /// The mean number of turns in a second; 0 if the loop returned before its first, or its mode is not watched.
        package var turnsPerSecond: Double
        /// The part of the time in which the loop did not wait, 0 to 1; `nil` for a loop that spins.
        package var busyShare: Double?
        /// The part of the time for which the loop's thread was on a CPU, 0 to 1; `nil` if unknown.
        package var cpuShare: Double?
        /// The descriptor that was always readable and that the app did not read, such as `descriptor 7, pipe:[4711]`;
        /// `nil` if the monitor found none, or did not look.
        package var readyDescriptor: String?
        /// Whether the app ran the loop in a mode without sources and timers, so that it returns at once; `nil` if not.
        package var isModeEmpty: Bool?
        /// The mode that starved while the loop ran in the one that ``StallReport/loop`` names; `nil` if none is known.
        package var awaitedMode: String?
        /// Whether a timer of that mode was due; `nil` if no mode starved and a thread ran the loop.
        package var isTimerDue: Bool?
        /// Whether the main queue had work, which only the common modes do; `nil` if no mode starved.
        package var hasMainQueueWork: Bool?

        /// Whether no thread ran the loop; `nil` if one did.
        package var isNotRun: Bool?

        package init(turnsPerSecond: Double, busyShare: Double? = nil) {
            self.turnsPerSecond = turnsPerSecond
            self.busyShare = busyShare
        }

        /// One sentence that says what the loop did, without a period at the end.
        package func sentence(in mode: String? = nil) -> String {
            if let awaitedMode {
                let awaited = awaitedMode == "kCFRunLoopDefaultMode" ? "default mode" : "mode \(awaitedMode)"
                let due = "a timer of the \(awaited) was due"
                if isNotRun == true { return "No thread ran the loop, and \(due)" }
                let work = hasMainQueueWork == true ? "the main queue had work" : nil
                let waited = [isTimerDue == true ? due : nil, work].compactMap { $0 }.joined(separator: " and ")
                let other = mode.map { "the mode \($0)" } ?? "another mode"
                return "While the loop ran in \(other), \(waited)"
            }
            let rate = "\(Self.grouped(turnsPerSecond)) times a second"
            var text = "Turned \(rate) without work"
            if let busyShare {
                let mean = busyShare * 1_000 / max(turnsPerSecond, 1e-3)
                text = "Busy for \(busyShare.percent) of the time: turned \(rate), for \(mean.whole) ms on average"
            } else if isModeEmpty == true {
                text = "The mode has no sources, so each run of the loop returns at once"
            } else if let readyDescriptor {
                text = "Woke \(rate) for \(readyDescriptor), which is always readable and never read"
            }
            return text + (cpuShare.map { "; \($0.percent) of a CPU" } ?? "")
        }

        /// The whole number with a comma between thousands.
        private static func grouped(_ number: Double) -> String {
            let digits = String(Int(min(max(number, 0), 1e12).rounded()))
            return digits.enumerated().map { index, digit in
                let isGroup = index > 0 && (digits.count - index) % 3 == 0
                return isGroup ? ",\(digit)" : "\(digit)"
            }.joined()
        }
    }

    /// What the loop did, as the words between its label and the duration.
    package var verb: String {
        if let pool { return pool.verb(isOver: state == .ended) }
        let verb =
            state == .ended
            ? kind.verbs.past
            : kind.isPeriod || [.starvation, .overdue, .pinned].contains(kind)
                ? kind.verbs.perfect : "stalled and has not come back after"
        // Each priority has threads of its own, and the others may have started work.
        guard kind == .starvation, let priorities = loop.priorities else { return verb }
        return verb.replacing("work", with: "work of \(priorities.joined(separator: " or ")) priority")
    }
}

extension StallKind {
    /// Whether it is a time in which the loop made progress, not one turn or wait that was too long.
    package var isPeriod: Bool { [.saturation, .spinning, .modeStarvation, .notRun].contains(self) }

    /// The verb in the present, and in the past and the perfect as the words before a duration.
    package var verbs: (present: String, past: String, perfect: String) {
        switch self {
        case .saturation: ("is saturated", "was saturated for", "has been saturated for")
        case .spinning: ("spins", "spun for", "has been spinning for")
        case .starvation: ("keeps work waiting", "kept work waiting for", "has kept work waiting for")
        case .modeStarvation:
            ("lets its default mode wait", "let its default mode wait for", "has let its default mode wait for")
        case .notRun: ("is not run", "was not run for", "has not been run for")
        case .overdue: ("is overdue", "took", "has not ended after")
        case .pinned: ("has a pinned thread", "had a pinned thread for", "has had a pinned thread for")
        default: ("stalls", "stalled for", "stalled for")
        }
    }
}

extension Double {
    /// A share of 0 to 1 in whole percent: `37 %`.
    package var percent: String { "\((self * 100).whole) %" }

    /// The nearest whole number; of numbers beyond 10^15, which damaged reports have, the nearest to them.
    package var whole: Int { isNaN ? 0 : Int(Swift.min(Swift.max(rounded(), -1e15), 1e15)) }

    /// The number with three decimal places, as shares are in reports.
    package var toThousandths: Double { (self * 1_000).rounded() / 1_000 }
}
