/// Decides, for one loop, whether it has not waited for too long though its turns are short.
///
/// A pure value, like ``StallDetector``. Ends when the loop waits again, or is left.
struct SaturationDetector {
    /// How long a loop may go without waiting, in nanoseconds.
    let threshold: UInt64

    /// A loop that does not come to wait.
    struct Saturation: Equatable {
        /// When it last left a wait, in monotonic nanoseconds.
        var since: UInt64
        /// The number of the first turn.
        var firstTurn: UInt64
        /// The number of the turn that was seen last.
        var lastTurn: UInt64
        var nesting: Int
    }

    enum Action: Equatable {
        case begin(Saturation)
        case end(Saturation)
    }

    private(set) var current: Saturation?
    /// The wait that the loop had left, and its turn, when that was first seen.
    private var window: (leftWait: UInt64, turn: UInt64)?
    private var lastNumber: UInt64 = 0

    init(threshold: UInt64) {
        self.threshold = threshold
    }

    /// Decides what a look at the loop at `now` means.
    mutating func decide(_ loop: TurnSnapshot, at now: UInt64) -> Action? {
        // Between two turns of a fed loop no turn is on, but their number has grown.
        let isFed = loop.leftWait != 0 && !loop.isGap && (loop.began != nil || loop.number > lastNumber)
        lastNumber = loop.number
        if var saturation = current {
            saturation.lastTurn = max(saturation.lastTurn, loop.number)
            guard isFed, loop.leftWait == saturation.since else {
                current = nil
                return .end(saturation)
            }
            current = saturation
            return nil
        }
        guard isFed else {
            window = nil
            return nil
        }
        if window?.leftWait != loop.leftWait { window = (loop.leftWait, loop.number) }
        guard let window, now >= loop.leftWait, now - loop.leftWait >= threshold, loop.number > window.turn else {
            return nil
        }
        let saturation = Saturation(
            since: loop.leftWait, firstTurn: window.turn, lastTurn: loop.number, nesting: loop.nesting
        )
        current = saturation
        return .begin(saturation)
    }
}
