/// Whether a loop makes progress, as the watchdog found at its last poll.
struct LoopProgress: Sendable, Equatable {
    /// The state of a loop.
    ///
    /// The raw values are the words of `loops[].state` in health records. Of a loop with several monitors the state that
    /// comes last in this list counts.
    enum State: String, Sendable, CaseIterable {
        /// The loop has not begun a turn.
        case starting
        /// The loop's thread has ended within a turn.
        case ended
        /// The loop waits, or its turn is below its threshold.
        case running
        /// A debugger holds the thread in a turn over the threshold.
        case held
        /// The loop is in a stall.
        case stalled
    }

    /// The loop's label.
    var label: String
    var state: State
    /// When the state began, in monotonic nanoseconds: for a stall, when the age of its turn begins to count.
    var since: UInt64

    /// Returns one element per label, in the order of their first elements.
    static func merged(_ all: [LoopProgress]) -> [LoopProgress] {
        var merged: [LoopProgress] = []
        var places: [String: Int] = [:]
        for progress in all {
            guard let place = places[progress.label] else {
                places[progress.label] = merged.count
                merged.append(progress)
                continue
            }
            let other = merged[place]
            if progress.rank > other.rank || progress.rank == other.rank && progress.since < other.since {
                merged[place] = progress
            }
        }
        return merged
    }

    private var rank: Int { State.allCases.firstIndex(of: state) ?? 0 }
}
