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

/// What waits for a loop while a turn of it goes on, by looks at it (a pure value).
///
/// Nothing is asked in a turn, and after its end the loop has served what waited. So a timer that is due at the last look waited
/// until the end; an item of the main queue, from the look that first saw it; what came after the last look is not known,
/// nor how long operations went on.
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

    mutating func add(_ look: Look) {
        last = look
        // A look that comes while the loop changes its timers says nothing.
        timers = look.timers ?? timers
        guard let now = look.items else { return }
        let before = items ?? 0
        // Items start in their order: with another first one, it is not known which are left.
        let isLess = now < before || look.firstItem != firstItem
        if isLess { arrivals = [] }
        let new = isLess ? now : now - before
        if new > 0 { arrivals.append((look.time, new)) }
        (items, firstItem, isCut) = (now, look.firstItem, look.isCut)
    }

    var dueTimers: [DueTimer] { timers ?? [] }

    /// Returns what waited until `end`, in monotonic nanoseconds; `nil` without a look, and if the loop has nothing to ask about.
    func victims(until end: UInt64) -> StallReport.Victims? {
        guard let last else { return nil }
        guard timers != nil || items != nil || last.operations.count > 0 || !last.missing.isEmpty else { return nil }
        func since(_ time: UInt64) -> UInt64 { end &- min(time, end) }
        var (total, skipped) = (0.0, 0)
        for timer in timers ?? [] {
            total += Double(since(timer.due))
            if timer.interval > 0 { skipped += Int(since(timer.due) / timer.interval) }
        }
        for arrival in arrivals { total += Double(since(arrival.time)) * Double(arrival.count) }
        let operations = last.operations
        // They may have ended right after the look.
        total += Double(operations.age)
        var victims = StallReport.Victims(totalWaitMilliseconds: (total / 1e6).toThousandths)
        victims.timers = timers?.count
        victims.longestTimerDelayMilliseconds = timers?.map { since($0.due) }.max().map { milliseconds($0) }
        victims.skippedFirings = skipped > 0 ? skipped : nil
        victims.mainQueueItems = items
        victims.longestItemWaitMilliseconds = arrivals.first.map { milliseconds(since($0.time)) }
        victims.operations = operations.count > 0 ? operations.count : nil
        victims.operationNames = operations.names.isEmpty ? nil : operations.names
        var missing = timers == nil ? last.missing : last.missing.filter { $0 != Self.changing }
        if timers?.count == RunLoopLayout.maximumTimers { missing.append("more timers than could be read") }
        if isCut { missing.append("more items of the main queue than were counted") }
        victims.missing = missing.isEmpty ? nil : missing
        return victims
    }

    static let changing = "the timers: the loop changed them while they were read"
    /// No mode is current then whose timers could be read, though those of the default mode may be due.
    static let outside = "the timers, as the loop is in no watched run"
}

/// A stall that is over, and whose last report waits for the turns that follow it without a wait.
struct FollowedStall {
    var open: OpenRecord
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
    private let memory = GuardedMemory()

    init(_ source: any LoopSource) {
        runLoop = (source as? RunLoopSource)?.address
        readsMainQueue = source.kind == .mainQueue || (source as? RunLoopSource)?.isMain == true
    }

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
                let isKnown = RunLoopLayout.learned != nil
                look.missing.append(isKnown ? VictimLog.changing : "the timers: \(unknown("CoreFoundation"))")
            }
        }
        if readsMainQueue {
            let all = QueueItems.ofMainQueue(memory)
            look.isCut = all.map { $0.count >= QueueItems.maximumItems } ?? false
            // No code of the program is left to run in some; the monitors' own are not the app's.
            let items = all?.filter { !DispatchLayout.isSpent($0, memory) }
            look.items = items.map { max($0.count - HeartbeatSource.pendingOnMainQueue, 0) }
            look.firstItem = items?.first ?? 0
            if items == nil { look.missing.append("the items of the main queue: \(unknown("libdispatch"))") }
        }
        return look
    }

    /// Returns the timers of the loop's mode that are due; `nil` without a run loop, or if they are not known.
    func dueTimers(at now: UInt64) -> [DueTimer]? {
        runLoop.flatMap { RunLoopLayout.learned?.dueTimers(of: $0, at: now, memory) }
    }
}
