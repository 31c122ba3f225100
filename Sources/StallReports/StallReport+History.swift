extension StallReport {
    /// What the watched loops did in the seconds before a stall, and the other loops during it; its times are relative
    /// to ``StallReport/startedAt``, negative before it.
    package struct History: Codable, Sendable, Equatable {
        /// The time before the stall that the history covers, in milliseconds: 5,000.
        package var windowMilliseconds: Double
        /// The stalled loop, and the other watched loops in the order in which the app watched them; at most 17.
        package var loops: [LoopHistory]
        package var omittedLoops: Int?

        package init(windowMilliseconds: Double, loops: [LoopHistory], omittedLoops: Int? = nil) {
            (self.windowMilliseconds, self.loops, self.omittedLoops) = (windowMilliseconds, loops, omittedLoops)
        }
    }

    package struct LoopHistory: Codable, Sendable, Equatable {
        package var label: String
        package var kind: LoopKind
        /// The turns of a millisecond or more, oldest first; empty if the loop had only shorter ones, or none.
        ///
        /// The stalled loop has those before the stall, at most 256; each other loop also those during it, the last 32.
        package var turns: [Turn]
        /// Whether older turns of the covered time are missing because there were too many; `nil` if none is missing.
        package var omitsOlderTurns: Bool?

        package init(label: String, kind: LoopKind, turns: [Turn], omitsOlderTurns: Bool? = nil) {
            (self.label, self.kind, self.turns, self.omitsOlderTurns) = (label, kind, turns, omitsOlderTurns)
        }
    }

    package struct Turn: Codable, Sendable, Equatable {
        /// When the turn began, in milliseconds after the beginning of the stall; negative before it.
        package var atMilliseconds: Double
        /// The turn's duration, in milliseconds; for a turn that was not over, the duration so far.
        package var durationMilliseconds: Double
        /// How long the loop had waited or been idle right before the turn, in milliseconds; 0 if another turn came before.
        package var waitedMilliseconds: Double
        /// Whether the turn was not over when the monitor last wrote the report; `nil` if it was over.
        package var isOngoing: Bool?

        package init(
            atMilliseconds: Double, durationMilliseconds: Double, waitedMilliseconds: Double, isOngoing: Bool? = nil
        ) {
            (self.atMilliseconds, self.durationMilliseconds) = (atMilliseconds, durationMilliseconds)
            (self.waitedMilliseconds, self.isOngoing) = (waitedMilliseconds, isOngoing)
        }
    }

    /// What a thread was working on: its Swift task, and the context that the app has set (`StallContext`).
    ///
    /// The monitor copied it in the same stop or wait as the thread's stack.
    public struct Context: Codable, Sendable, Hashable {
        /// The limit on the number of attributes.
        package static let maximumAttributes = 8
        /// The limit on the length of each text, in bytes of UTF-8: a label's and a task's name's.
        package static let maximumText = 128

        /// The id of the Swift task, unique in the process; `nil` if the thread ran none, or it is not known.
        public var taskID: UInt64?
        /// The name of the Swift task; `nil` if it has none.
        public var taskName: String?
        /// The label of the app's context, such as `GET /feed`; `nil` if the app has set none.
        public var label: String?
        /// The id of the trace, as 32 hexadecimal digits.
        public var traceID: String?
        /// The id of the span, as 16 hexadecimal digits.
        public var spanID: String?
        /// The attributes of the app's context, at most 8; `nil` if there are none.
        public var attributes: [String: String]?
        /// Whether a text was longer than its limit, or not UTF-8, and was cut; `nil` means no.
        package var isCut: Bool?
        /// The number of attributes that were left out because there were too many; `nil` if none was.
        package var omittedAttributes: Int?
    }
}

extension StallReport.Context {
    package init(taskID: UInt64?) { self.taskID = taskID }

    /// The name by which stalls are grouped and filtered: the label, else the task's name; `nil` without both.
    package var name: String? { label ?? taskName }

    /// One line: `GET /feed, task 12 "feed", trace 4bf9…, span 00f0…, user=free`.
    package var inWords: String {
        var parts: [String] = []
        if let label { parts.append(label.isEmpty ? "(empty label)" : label) }
        if let taskID { parts.append("task \(taskID)" + (taskName.map { " \"\($0)\"" } ?? "")) }
        if let traceID { parts.append("trace \(traceID)") }
        if let spanID { parts.append("span \(spanID)") }
        parts += (attributes ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        if let omittedAttributes {
            parts.append("\(omittedAttributes) more \(omittedAttributes == 1 ? "attribute" : "attributes")")
        }
        if isCut == true { parts.append("cut") }
        return parts.joined(separator: ", ")
    }
}
