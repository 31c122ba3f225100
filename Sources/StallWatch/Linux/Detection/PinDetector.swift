import StackCapture

/// Decides which threads of a pool are *pinned*: one task keeps such a thread, so that no other task gets it.
///
/// A pure value. Every look has the threads that run a task of the pool. A thread is pinned if it has the same task at all
/// looks of a time over the threshold, and from look to look, but for those that meet it ready with hardly any CPU time,
/// - is *blocked*: it waits at each look, and has hardly used a CPU since the last one. A thread that has not run at all is in
///   one wait, which is proof. A call may also wake again and again. A thread that is ready and has no CPU is not blocked;
/// - or is *computing*: it has used a CPU, or was ready to, for a quarter of the time, while the oldest item that waits in the
///   pool's queue has not run. Items start in their order. Without such an item it is only counted: nothing was delayed.
///
/// A task may suspend between two looks and be back at the second one. So what one wait does not prove takes ``looks`` looks,
/// at uneven distances; that a task computes stays likely, because an item may run and leave no trace.
struct PinDetector {
    enum Hold: Equatable { case blocked, computing }

    /// One thread at one look.
    struct Sighting: Equatable {
        var thread: Int32
        /// The id of the task that it runs, which no other task of the process has.
        var task: UInt64
        /// The address of the queue or task executor whose thread it is.
        var pool: UInt64
        var reading: ThreadReading
        /// The traces of the oldest item that waits in the queue (``SwiftTaskMemory/traces(at:)``), 0 for none; `nil` if that
        /// is not known.
        var oldestItem: Int?

        fileprivate var waits: Bool { [UInt8(ascii: "S"), UInt8(ascii: "D")].contains(reading.state) }
    }

    struct Pin: Equatable {
        var thread: Int32
        var task, pool: UInt64
        var hold: Hold
        /// The reading of the first look that found the task on the thread.
        var first: ThreadReading
        /// By how much the task may have been there earlier, in nanoseconds.
        var uncertainty: UInt64
    }

    enum Action: Equatable {
        case begin(Pin)
        case check(thread: Int32)
        /// The last time at which the thread was seen pinned, in monotonic nanoseconds.
        case end(thread: Int32, at: UInt64)
        /// A task computes on the thread, and none waits.
        case count(thread: Int32)
    }

    fileprivate struct Kept {
        var sighting: Sighting
        /// Where the time begins in which the thread did the same.
        var first: ThreadReading
        var uncertainty: UInt64 = 0
        /// What the thread has done from look to look; `nil` at the first one, or if it was neither.
        var hold: Hold?
        /// Since when the oldest item that waits is the same, in monotonic nanoseconds.
        var oldestSince: UInt64
        var isPinned = false
        var isCounted = false
        /// Whether something speaks against a report, and whether that is one of the whole pool.
        var isExcused = false
        var isLeft = false
        /// Whether there was no room for a report of it.
        var isPostponed = false
        var looks = 1
        /// Whether the thread has not run since the first look.
        var isOneWait = true
    }

    /// The least time for which a pinned thread keeps its task, in nanoseconds.
    let threshold: UInt64
    private var kept: [Int32: Kept] = [:]
    private var lastLook: UInt64 = 0
    /// Whether threads are left to the report of their whole pool.
    private(set) var hasLeft = false

    /// The looks in a row that show a hold which no single wait proves: by chance, one in 2^23 of a task that is there half of
    /// the time.
    static let looks = 24

    /// The share of the time, as its inverse, that a blocked thread uses a CPU at most: 5 %.
    private static let blockedPart: UInt64 = 20
    /// The share, as its inverse, for which one that computes at least has a CPU or waits for one.
    private static let computingPart: UInt64 = 4

    init(threshold: UInt64) { self.threshold = threshold }

    /// The number of threads of a pool that are pinned, as far as they are reported.
    func count(ofPool pool: UInt64) -> Int { kept.values.count { $0.isPinned && $0.sighting.pool == pool } }

    /// Whether more looks would show that a thread is pinned.
    var hasDoubts: Bool { kept.values.contains(where: \.isDoubtful) }
    /// Whether no thread becomes pinned before its task changes.
    var isQuiet: Bool { kept.values.allSatisfy(\.isExcused) }

    /// Does not report a thread, which begins to count again with its next task.
    mutating func excuse(_ thread: Int32) {
        kept[thread]?.isExcused = true
        kept[thread]?.isPinned = false
    }

    /// Does not report a thread until ``recall()``: the report of its whole pool is about it.
    mutating func leave(_ thread: Int32) {
        excuse(thread)
        kept[thread]?.isLeft = true
        hasLeft = true
    }

    /// Counts the threads that were left, from their last look on: the report of the pool is over, and they may go on.
    mutating func recall() {
        hasLeft = false
        for (thread, old) in kept where old.isLeft {
            var new = old
            new.begin(at: old.sighting.reading)
            new.uncertainty = old.uncertainty &+ (new.first.time &- old.first.time)
            kept[thread] = new
        }
    }

    /// Begins a pin once more at the next look, because there is no room for its report now; it counts in the others'.
    mutating func postpone(_ thread: Int32) { kept[thread]?.isPostponed = true }

    /// Takes a look at `now`, and returns what has changed; looks before `countingFrom` do not count.
    mutating func decide(_ sightings: [Sighting], at now: UInt64, countingFrom: UInt64) -> [Action] {
        var actions: [Action] = []
        let previous = max(lastLook, countingFrom)
        let before = kept
        kept = [:]
        for sighting in sightings {
            var thread = Kept(
                sighting: sighting, first: sighting.reading, uncertainty: now - min(previous, now),
                oldestSince: sighting.reading.time)
            if let last = before[sighting.thread], last.continues(with: sighting, since: countingFrom) {
                thread = last
                follow(&thread, to: sighting, &actions)
            }
            kept[sighting.thread] = thread
        }
        for (thread, old) in before where old.isPinned && kept[thread]?.isPinned != true {
            actions.insert(.end(thread: thread, at: old.sighting.reading.time), at: 0)
        }
        lastLook = now
        return actions
    }

    private func follow(_ kept: inout Kept, to sighting: Sighting, _ actions: inout [Action]) {
        let (now, last) = (sighting.reading, kept.sighting.reading)
        let (used, step) = (now.onCPU &- min(last.onCPU, now.onCPU), now.time &- last.time)
        // Between looks that are close, one short waking is more than that part.
        let (first, whole) = (kept.first, now.time &- kept.first.time)
        let isIdle =
            used < step / Self.blockedPart
            || step < threshold / 2 && now.onCPU &- min(first.onCPU, now.onCPU) < whole / Self.blockedPart
        // How much of a CPU it gets is the machine's doing, and that of a quota.
        let wanted = now.used &- min(last.used, now.used)
        let isComputing = wanted >= step / Self.computingPart || now.neverWaited(since: last)
        let hold: Hold? = isIdle && sighting.waits ? .blocked : isComputing ? .computing : nil
        let hasOtherItem = kept.sighting.oldestItem != sighting.oldestItem
        if hasOtherItem { kept.oldestSince = now.time }
        let hasRun = now.hasRun(since: last)
        kept.looks += 1
        kept.isOneWait = kept.isOneWait && !hasRun
        kept.sighting = sighting
        if kept.isPinned {
            // A blocked call may be met awake, and a thread that computes without its CPU. Once another item waits longest,
            // nothing shows any more that the task has not paused.
            kept.isPinned = kept.hold == .blocked ? isIdle : hold != .blocked && !hasOtherItem
            if !kept.isPinned {
                kept.begin(at: now)
            } else if kept.isPostponed.take(), let pin = kept.pin {
                actions.append(.begin(pin))
            } else {
                actions.append(.check(thread: sighting.thread))
            }
            return
        }
        guard let hold else {
            // A call that wakes again and again may be met awake, and a thread that computes without its CPU.
            if isIdle { kept.looks -= 1 } else { kept.begin(at: now) }
            return
        }
        if kept.hold != nil, kept.hold != hold {
            kept.begin(at: last)
            kept.isOneWait = !hasRun
        }
        kept.hold = hold
        guard now.time &- kept.first.time >= threshold, !kept.isExcused else { return }
        if hold == .computing, sighting.oldestItem == 0, !kept.isCounted {
            kept.isCounted = true
            actions.append(.count(thread: sighting.thread))
        }
        if hold == .computing {
            guard let item = sighting.oldestItem, item != 0, now.time &- kept.oldestSince >= threshold else { return }
        }
        guard kept.isProven || kept.looks >= Self.looks else { return }
        kept.isPinned = true
        if let pin = kept.pin { actions.append(.begin(pin)) }
    }
}

extension PinDetector.Kept {
    fileprivate mutating func begin(at reading: ThreadReading) {
        (first, uncertainty, hold, isCounted, isExcused) = (reading, 0, nil, false, false)
        (looks, isOneWait, isLeft, isPostponed) = (1, true, false, false)
    }

    /// What a report of it is about; `nil` at the first look.
    fileprivate var pin: PinDetector.Pin? {
        hold.map { hold in
            PinDetector.Pin(
                thread: sighting.thread, task: sighting.task, pool: sighting.pool, hold: hold, first: first,
                uncertainty: uncertainty)
        }
    }

    fileprivate var isProven: Bool { hold == .blocked && isOneWait }

    /// Whether it is held at all looks, but may have been given back between them.
    fileprivate var isDoubtful: Bool {
        let isHeld = hold == .blocked || hold == .computing && sighting.oldestItem ?? 0 != 0
        return isHeld && !isProven && !isPinned && !isExcused
    }

    fileprivate func continues(with sighting: PinDetector.Sighting, since time: UInt64) -> Bool {
        self.sighting.task == sighting.task && self.sighting.pool == sighting.pool && (isPinned || first.time >= time)
    }
}
