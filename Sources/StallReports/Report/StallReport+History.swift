extension StallReport {
    /// What the watched loops did in the seconds before a stall, and the other loops during it.
    ///
    /// Its times are relative to the beginning of the stall, ``StallReport/startedAt``: negative before it.
    public struct History: Codable, Sendable, Equatable {
        /// The time before the stall that the history covers, in milliseconds: 5,000.
        public var windowMilliseconds: Double
        /// The stalled loop, and the other watched loops in the order in which the app watched them; at most 17.
        public var loops: [LoopHistory]
        /// The number of watched loops that ``loops`` omits because there are too many; `nil` if it omits none.
        public var omittedLoops: Int?

        package init(windowMilliseconds: Double, loops: [LoopHistory], omittedLoops: Int? = nil) {
            self.windowMilliseconds = windowMilliseconds
            self.loops = loops
            self.omittedLoops = omittedLoops
        }
    }

    /// The turns of one loop around a stall.
    public struct LoopHistory: Codable, Sendable, Equatable {
        /// The label under which the app registered the loop.
        public var label: String
        /// The kind of loop.
        public var kind: LoopKind
        /// The turns of a millisecond or more, oldest first; empty if the loop had only shorter ones, or none.
        ///
        /// The stalled loop has those before the stall, at most 256; each other loop also those during it, the last 32.
        public var turns: [Turn]
        /// Whether older turns of the covered time are missing because there were too many; `nil` if none is missing.
        public var omitsOlderTurns: Bool?

        package init(label: String, kind: LoopKind, turns: [Turn], omitsOlderTurns: Bool? = nil) {
            self.label = label
            self.kind = kind
            self.turns = turns
            self.omitsOlderTurns = omitsOlderTurns
        }
    }

    /// One turn of a loop.
    public struct Turn: Codable, Sendable, Equatable {
        /// When the turn began, in milliseconds after the beginning of the stall; negative before it.
        public var atMilliseconds: Double
        /// The turn's duration, in milliseconds; for a turn that was not over, the duration so far.
        public var durationMilliseconds: Double
        /// How long the loop had waited or been idle right before the turn, in milliseconds; 0 if another turn came before.
        public var waitedMilliseconds: Double
        /// Whether the turn was not over when the monitor last wrote the report; `nil` if it was over.
        public var isOngoing: Bool?

        package init(
            atMilliseconds: Double, durationMilliseconds: Double, waitedMilliseconds: Double, isOngoing: Bool? = nil
        ) {
            self.atMilliseconds = atMilliseconds
            self.durationMilliseconds = durationMilliseconds
            self.waitedMilliseconds = waitedMilliseconds
            self.isOngoing = isOngoing
        }
    }
}
