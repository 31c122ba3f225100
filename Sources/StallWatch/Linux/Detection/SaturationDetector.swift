import StackCapture

/// Decides when a loop is saturated: it has not waited for too long, although its turns are short (a pure value).
struct SaturationDetector {
    /// The time that a loop may go without waiting, in nanoseconds.
    let threshold: UInt64

    /// A period in which a loop does not wait.
    struct Saturation: Equatable {
        /// When the loop last left a wait, in monotonic nanoseconds.
        var since: UInt64
        var firstTurn: UInt64
        /// The number of the last turn that a poll has seen.
        var lastTurn: UInt64
        var nesting: Int
    }

    enum Action: Equatable {
        case begin(Saturation)
        case end(Saturation)
    }

    private(set) var current: Saturation?
    /// The wait that the loop had left, and the number of its turn, when a poll first saw them.
    private var window: (leftWait: UInt64, turn: UInt64)?
    private var lastNumber: UInt64 = 0

    init(threshold: UInt64) {
        self.threshold = threshold
    }

    /// Returns the beginning or the end of a saturation, if the loop's state at `now` is one.
    mutating func decide(_ loop: TurnSnapshot, at now: UInt64) -> Action? {
        // Between two turns of a busy loop no turn is in progress, but the number of turns has grown.
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

/// Reports the saturations of one loop.
struct SaturationSupervisor {
    private var detector: SaturationDetector
    private var record: StallRecord?

    init(threshold: UInt64) {
        detector = SaturationDetector(threshold: threshold)
    }

    /// Reports a saturation that begins or ends, with a sample and a record of `context`.
    mutating func poll(_ poll: LoopPoll, of loop: LoopMonitor, _ context: WatchdogContext, at time: UInt64) {
        switch detector.decide(poll.turn, at: time) {
        case .begin(let saturation):
            var record = StallRecord(saturation, of: loop, poll, threshold: detector.threshold, at: time)
            var sample = context.sample(poll.target, age: time &- saturation.since, mayWait: false)
            sample.isValid = true
            record.samples.append(sample)
            record.captureMethods = context.capturer.methods
            record.unwinder = context.capturer.unwinder
            record.history = StallHistory(of: loop, among: context.loops, start: saturation.since, now: context.now())
            record.suppressed = context.suppressed.current
            self.record = record
            loop.recorder.markSaturated(saturation.since)
            context.submit(record)
        case .end(let saturation):
            guard var record else { return }
            record.state = .ended
            record.turns = saturation.lastTurn - saturation.firstTurn
            let end = poll.saturationEnd ?? time
            record.duration = max(end &- min(saturation.since, end), record.threshold)
            record.history?.update(among: context.loops, now: time)
            self.record = nil
            context.submit(record)
        case nil:
            break
        }
    }

    /// Reports a saturation that still lasts as abandoned.
    func leave(_ context: WatchdogContext, at time: UInt64) {
        guard var record, let saturation = detector.current else { return }
        record.state = .abandoned
        record.duration = time &- saturation.since
        context.submit(record)
    }
}
