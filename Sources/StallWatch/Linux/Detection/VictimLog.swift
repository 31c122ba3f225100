import LinuxSupport
import StackCapture
import StallReports

/// The operations with a limit that are in progress.
struct OperationsInFlight: Equatable, Sendable {
    var count = 0
    /// Some of their different names, or those of their contexts.
    var names: [String] = []
    /// The sum of their ages within a stall, in nanoseconds.
    var age: UInt64 = 0

    static let maximumNames = 4
}

/// When the operations in progress at one time began: the same for the stalls of all loops.
struct OperationsReading: Sendable {
    /// Some of their different names, or those of their contexts.
    var names: [String] = []
    /// In monotonic nanoseconds.
    var began: [UInt64] = []

    /// Returns the operations with their ages at a time, since a stall began, in monotonic nanoseconds.
    func inFlight(since start: UInt64, at now: UInt64) -> OperationsInFlight {
        let age: UInt64 = began.reduce(0) { $0 &+ (now &- min(max($1, start), now)) }
        return OperationsInFlight(count: began.count, names: names, age: age)
    }
}

/// What waits for a loop while a turn of it goes on, by looks at it (a pure value).
///
/// Nothing is asked in a turn, and after its end the loop has served what waited. So what waits at the last look waited until
/// the end, and what is gone before, as the turn served it, until the look that saw it last. A timer waited from its date on,
/// and an item of the main queue from the look that first saw it. What came after the last look is not known.
struct VictimLog {
    struct Look {
        /// In monotonic nanoseconds.
        var time: UInt64
        /// `nil` without a run loop, or if they are not known.
        var timers: [DueTimer]?
        var items: Int?
        /// The address of the main queue's oldest item, 0 for none.
        var firstItem: UInt64 = 0
        /// Whether there were more items than are read.
        var isCut = false
        var operations = OperationsInFlight()
        /// Why something is missing.
        var missing: [String] = []

        /// Whether something waited; `nil` if that is not known.
        var hasVictims: Bool? {
            if timers?.isEmpty == false || items ?? 0 > 0 || operations.count > 0 { return true }
            return missing.isEmpty ? false : nil
        }
    }

    private var last: Look?
    private var timers: [DueTimer]?
    private var items: Int?
    private var firstItem: UInt64 = 0
    private var isCut = false
    /// How many items the looks found for the first time.
    private var arrivals: [(time: UInt64, count: Int)] = []
    /// When the last look at the timers was, and at the items.
    private var (timersSeen, itemsSeen): (UInt64, UInt64) = (0, 0)
    /// What the turn has run or removed by now, and until when looks saw it.
    private var servedTimers: [(timer: DueTimer, until: UInt64)] = []
    private var servedItems: [(since: UInt64, until: UInt64, count: Int)] = []

    mutating func add(_ look: Look) {
        last = look
        // A look that comes while the loop changes its timers or items says nothing of them.
        if let due = look.timers { see(due, at: look.time) }
        if let count = look.items { see(count, of: look) }
    }

    private mutating func see(_ due: [DueTimer], at time: UInt64) {
        if let timers, !timers.isEmpty {
            let left = Set(due)
            let served = timers.filter { !left.contains($0) }.prefix(RunLoopLayout.maximumTimers - servedTimers.count)
            servedTimers += served.map { (timer: $0, until: timersSeen) }
        }
        (timers, timersSeen) = (due, time)
    }

    private mutating func see(_ count: Int, of look: Look) {
        let before = items ?? 0
        // Items start in their order: with another first one, it is not known which are left; at most all that are there.
        let isLess = count < before || look.firstItem != firstItem
        if isLess {
            serve(before - count)
            arrivals = []
        }
        let new = isLess ? count : count - before
        if new > 0 { arrivals.append((look.time, new)) }
        (items, firstItem, isCut, itemsSeen) = (count, look.firstItem, isCut || look.isCut, look.time)
    }

    /// Keeps the first items as served.
    private mutating func serve(_ count: Int) {
        var left = count
        for arrival in arrivals where left > 0 {
            servedItems.append((arrival.time, itemsSeen, min(arrival.count, left)))
            left -= arrival.count
        }
    }

    /// Returns when to look again after a look at a stall that began at `start`, in monotonic nanoseconds.
    ///
    /// A 32nd of the age bounds the error of a wait to 3 % of it.
    static func nextLook(after time: UInt64, from start: UInt64) -> UInt64 {
        time &+ max((time &- min(start, time)) / 32, 1_000_000)
    }

    /// When the last look was, in monotonic nanoseconds; `nil` without one.
    var lastLook: UInt64? { last?.time }

    var dueTimers: [DueTimer] { timers ?? [] }

    /// Returns what waited from `start` to `end`, in monotonic nanoseconds; `nil` without a look, and if the loop has nothing to
    /// ask about.
    func victims(from start: UInt64, until end: UInt64) -> StallReport.Victims? {
        guard let last else { return nil }
        guard timers != nil || items != nil || last.operations.count > 0 || !last.missing.isEmpty else { return nil }
        let times = timerTimes(from: start, until: end)
        let waits = servedItems + arrivals.map { (since: $0.time, until: end, count: $0.count) }
        var (total, longest) = (Double(times.total), UInt64(0))
        for wait in waits {
            let time = min(wait.until, end) &- min(wait.since, wait.until, end)
            total += Double(time) * Double(wait.count)
            longest = max(longest, time)
        }
        let operations = last.operations
        // They may have ended right after the look.
        total += Double(operations.age)
        var victims = StallReport.Victims(totalWaitMilliseconds: (total / 1e6).toThousandths)
        victims.timers = timers.map { _ in times.count }
        victims.longestTimerDelayMilliseconds = times.count > 0 ? milliseconds(times.longest) : nil
        victims.skippedFirings = times.skipped > 0 ? times.skipped : nil
        victims.mainQueueItems = items.map { servedItems.reduce($0) { $0 + $1.count } }
        victims.longestItemWaitMilliseconds = waits.isEmpty ? nil : milliseconds(longest)
        victims.operations = operations.count > 0 ? operations.count : nil
        victims.operationNames = operations.names.isEmpty ? nil : operations.names
        var missing = last.missing.filter { reason in
            !(timers != nil && reason == Self.changing || items != nil && reason == Self.changingItems)
        }
        if max(timers?.count ?? 0, servedTimers.count) >= RunLoopLayout.maximumTimers {
            missing.append("more timers than could be read")
        }
        if isCut { missing.append("more items of the main queue than were counted") }
        victims.missing = missing.isEmpty ? nil : missing
        return victims
    }

    /// Returns how many timers waited, for how long within the stall in all, how late the latest was, and the firings lost.
    private func timerTimes(
        from start: UInt64, until end: UInt64
    ) -> (count: Int, total: UInt64, longest: UInt64, skipped: Int) {
        let due = timers ?? []
        // One that the turn has run may be due again.
        let others = Set(servedTimers.map { $0.timer.address }).subtracting(due.map(\.address))
        var times = (count: due.count + others.count, total: UInt64(0), longest: UInt64(0), skipped: 0)
        for (timer, seen) in servedTimers + due.map({ (timer: $0, until: end) }) {
            let until = max(min(seen, end), start)
            // The time before the stall is not its.
            times.total &+= until - min(max(timer.due, start), until)
            times.longest = max(times.longest, until - min(timer.due, until))
            guard timer.interval > 0 else { continue }
            times.skipped += Int(timer.firings(by: until) - timer.firings(by: start))
        }
        return times
    }

    static let changing = "the timers: the loop changed them while they were read"
    static let changingItems = "the items of the main queue: they changed while they were read"
    /// No mode is current then whose timers could be read, though those of the default mode may be due.
    static let outside = "the timers, as the loop is in no watched run"
}

/// A stall that is over, and whose last report waits for the turns that follow it without a wait.
struct FollowedStall {
    let open: OpenRecord
    let samples: [StallRecord.Sample]
    /// When the stall ended, in monotonic nanoseconds.
    let end: UInt64
    /// When it is reported if no other turn goes on, and at the latest, in monotonic nanoseconds.
    private let earliest, deadline: UInt64

    /// The time within which the next turn begins if the loop does not wait, in nanoseconds: the watchdog may look between two.
    private static let pause: UInt64 = 5_000_000
    /// The longest time for which turns are followed, in nanoseconds: a process that ends meanwhile leaves a stall that goes on.
    private static let longest: UInt64 = 50_000_000

    init(open: OpenRecord, samples: [StallRecord.Sample], end: UInt64, threshold: UInt64) {
        (self.open, self.samples, self.end) = (open, samples, end)
        deadline = end &+ min(threshold, Self.longest)
        earliest = min(end &+ Self.pause, deadline)
    }

    /// When the stall is reported, while another turn goes on or not.
    func due(besideTurn goesOn: Bool) -> UInt64 { goesOn ? deadline : earliest }

    /// Returns the number of turns that followed without a wait, and how long they took by `now`, in nanoseconds.
    func laterTurns(of turns: [TurnHistory.Turn], at now: UInt64) -> (count: Int, time: UInt64) {
        var (count, time, last) = (0, UInt64(0), end)
        for turn in turns where turn.began >= end {
            // Shorter turns, which are not kept, may be in between.
            guard turn.began &- last < TurnHistory.shortest else { break }
            last = turn.ended ?? max(now, turn.began)
            (count, time) = (count + 1, time &+ (last &- turn.began))
        }
        return (count, time)
    }
}

/// Looks at what waits for a loop, on the watchdog; only reads.
struct VictimReader {
    private let runLoop: UInt64?
    let readsMainQueue: Bool
    private let timers: @Sendable () -> RunLoopLayout?
    private let items: @Sendable () -> QueueItems?
    private let memory = GuardedMemory()

    /// Creates a reader for a loop, which asks for the two layouts at each look: they may be learned later.
    init(
        _ source: any LoopSource, timers: @escaping @Sendable () -> RunLoopLayout? = { RunLoopLayout.learned },
        items: @escaping @Sendable () -> QueueItems? = { QueueItems.learned }
    ) {
        (self.timers, self.items) = (timers, items)
        runLoop = (source as? RunLoopSource)?.address
        readsMainQueue = source.kind == .mainQueue || (source as? RunLoopSource)?.isMain == true
    }

    /// Whether there is something to read but for operations.
    var readsLoop: Bool { runLoop != nil || readsMainQueue }

    /// Reads what waits for the loop, but for its timers in a gap between two runs.
    func look(at now: UInt64, _ operations: OperationsInFlight, inGap isGap: Bool = false) -> VictimLog.Look {
        func unknown(_ library: String) -> String {
            "\(library) has another layout, or the monitor was still preparing"
        }
        var look = VictimLog.Look(time: now, operations: operations)
        if runLoop != nil, isGap {
            look.missing.append(VictimLog.outside)
        } else if runLoop != nil {
            look.timers = dueTimers(at: now)
            if look.timers == nil {
                look.missing.append(timers() != nil ? VictimLog.changing : "the timers: \(unknown("CoreFoundation"))")
            }
        }
        if readsMainQueue {
            // A heartbeat that runs meanwhile is no item of the app's.
            let before = HeartbeatSource.pendingOnMainQueue
            let all = QueueItems.ofMainQueue(memory, by: items())
            look.isCut = all.map { $0.count >= QueueItems.maximumItems } ?? false
            // No code of the program is left to run in some; the monitors' own are not the app's.
            let found = all?.filter { !DispatchLayout.isSpent($0, memory) }
            look.items = found.map { max($0.count - max(before, HeartbeatSource.pendingOnMainQueue), 0) }
            look.firstItem = found?.first ?? 0
            if found == nil {
                let reason = "the items of the main queue: \(unknown("libdispatch"))"
                look.missing.append(items() != nil ? VictimLog.changingItems : reason)
            }
        }
        return look
    }

    /// Returns the timers of the loop's mode that are due; `nil` without a run loop, or if they are not known.
    func dueTimers(at now: UInt64) -> [DueTimer]? {
        runLoop.flatMap { timers()?.dueTimers(of: $0, at: now, memory) }
    }
}
