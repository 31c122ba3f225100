internal import CoreFoundation
import LinuxSupport
import StackCapture
import Synchronization

/// A timer that is due: since when, and every how many nanoseconds it fires, 0 for once.
struct DueTimer: Hashable, Sendable {
    /// In monotonic nanoseconds.
    var due: UInt64
    var interval: UInt64
    /// That of the timer; 0 if it is not known.
    var address: UInt64 = 0

    /// Returns how often a timer that repeats should have fired by a time, after the first time.
    func firings(by time: UInt64) -> UInt64 { (max(time, due) - due) / interval }
}

/// Where a CFRunLoop keeps the timers of the mode that it runs in: offsets in words (CFRunLoop.c, CFArray.c).
///
/// CoreFoundation's functions take locks, and tell of the first timer only, which may be the one whose callout goes on. The
/// layout is private: a loop of the monitor's own proves it, whose three timers are found by their addresses, dates and
/// interval. While another loop is read it may change its timers, so each word is read through the kernel and checked.
struct RunLoopLayout: Equatable, Sendable {
    /// In the run loop, its current mode, NULL outside of runs; in the mode, the array of its timers, sorted by date.
    private var mode = 0, timers = 0
    /// In the array, the number of its elements, and its deque.
    private var count = 0, deque = 0
    /// In a timer, its run loop, when it fires in monotonic nanoseconds, its interval in seconds, and the bit that is set while its callout goes on.
    private var runLoop = 0, date = 0, interval = 0, bits = 0
    private var isFiring: UInt64 = 0
    /// The first word of each timer.
    private var type: UInt64 = 0

    /// The most timers that are due of those that are read: some 400 µs.
    static let maximumTimers = 1_024
    /// The most timers whose callouts go on, one within the other, which are read beside these.
    private static let mostFiring = 8
    /// The number of words in which something is searched: more than a run loop, a mode and a timer have.
    private static let searchedWords = 24
    private static let arrayWords = 8
    /// A longer interval is none, in seconds: 30 years.
    private static let longestInterval = 1e9

    static var learned: RunLoopLayout? { state.withLock { $0 } }
    private static let state = ProcessMutex<RunLoopLayout?>(nil)

    /// Returns the timers of the mode in which a loop runs that are due, except those whose callout goes on; empty if it does
    /// not run, `nil` if the loop changes its timers meanwhile.
    ///
    /// A timer fires by the monotonic clock, so that a change of the clock of dates, or a suspension, makes none late.
    func dueTimers(of loop: UInt64, at now: UInt64, _ memory: some MemoryReading) -> [DueTimer]? {
        guard let current = memory.word(at: loop &+ UInt64(8 * mode)) else { return nil }
        guard current != 0 else { return [] }
        guard let array = memory.word(at: current &+ UInt64(8 * timers)) else { return nil }
        guard array != 0 else { return [] }
        guard let words = memory.words(at: array, count: Self.arrayWords) else { return nil }
        guard words[count] > 0 else { return [] }
        let read = Int(min(words[count], UInt64(Self.maximumTimers + Self.mostFiring)))
        guard let items = Self.items(words[deque], read, memory) else { return nil }
        var due: [DueTimer] = []
        for item in items where due.count < Self.maximumTimers {
            guard let timer = memory.words(at: item, count: timerWords), timer[0] == type, timer[runLoop] == loop else {
                return nil
            }
            guard timer[bits] & isFiring == 0, timer[date] <= now else { continue }
            let every = Double(bitPattern: timer[interval])
            due.append(
                DueTimer(
                    due: timer[date],
                    interval: every > 0 && every < Self.longestInterval ? UInt64(every * 1e9) : 0, address: item))
        }
        return memory.words(at: array, count: Self.arrayWords) == words ? due : nil
    }

    private var timerWords: Int { max(runLoop, date, interval, bits) + 1 }

    /// Returns the first elements of an array's deque: its first word is the number of free places before them.
    private static func items(_ deque: UInt64, _ count: Int, _ memory: some MemoryReading) -> [UInt64]? {
        guard let free = memory.word(at: deque), free < 1 << 32 else { return nil }
        return memory.words(at: deque &+ 16 &+ 8 &* free, count: count)
    }
}

// MARK: - Learning the layout

extension RunLoopLayout {
    /// The dates of the timers that are not due, in seconds from now, and the interval of each: no other word has them.
    private static let laterDates = [1_234_567.0, 2_345_678]
    private static let learnedInterval = 12_345.0
    /// How well the moment at which a timer fires is known, in nanoseconds.
    private static let dateError = 1e9
    /// The most runs, of one pass each: a run with a time limit has libdispatch start threads for its timer.
    private static let maximumRuns = 1_000

    /// Learns the layout once, in some milliseconds, on a thread that has no run loop and ends soon: the loop ends with it.
    static func learn() {
        guard learned == nil else { return }
        let found = search()
        state.withLock { $0 = found }
    }

    /// The descriptors that a run loop with a second mode takes, and those that stay free for the app.
    private static let descriptorsOfLoop = (own: 8, free: 24)

    /// Makes the run loop of a thread that has none; `nil` if the app would be left with few descriptors: CoreFoundation
    /// ends the process if it gets none for a loop or a mode.
    static func makePrivateLoop() -> CFRunLoop? {
        guard hasDescriptors(for: descriptorsOfLoop.own + descriptorsOfLoop.free) else { return nil }
        return CFRunLoopGetCurrent()
    }

    private static func address(_ object: AnyObject) -> UInt64 {
        UInt64(UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()))
    }

    private static func search() -> RunLoopLayout? {
        let mode = CFStringCreateWithCString(nil, "stallwatch-layout", CFStringBuiltInEncodings.UTF8.rawValue)
        guard let loop = makePrivateLoop(), let mode else { return nil }
        let (memory, loopAddress, now) = (GuardedMemory(), address(loop), CFAbsoluteTimeGetCurrent())
        let later = laterDates.compactMap {
            CFRunLoopTimerCreateWithHandler(nil, now + $0, learnedInterval, 0, 0) { _ in }
        }
        let addresses = later.map(address)
        // What the callout of the first timer sees: where the list is, its mode and its array, and the words of the timer.
        let seen = Mutex<(layout: RunLoopLayout, mode: UInt64, array: UInt64, timer: [UInt64])?>(nil)
        let due = CFRunLoopTimerCreateWithHandler(nil, now, learnedInterval, 0, 0) { timer in
            let memory = GuardedMemory()
            guard let timer = timer.map(address), let words = memory.words(at: timer, count: searchedWords),
                let list = findList(of: [timer] + addresses, in: loopAddress, memory)
            else { return }
            seen.withLock { $0 = (list.layout, list.mode, list.array, words) }
            CFRunLoopStop(CFRunLoopGetCurrent())
        }
        guard let due, later.count == laterDates.count else { return nil }
        for timer in later + [due] { CFRunLoopAddTimer(loop, timer, mode) }
        defer { for timer in later + [due] { CFRunLoopTimerInvalidate(timer) } }
        for _ in 0..<maximumRuns where seen.withLock({ $0 == nil }) { CFRunLoopRunInMode(mode, 0, true) }
        guard let (layout, currentMode, array, during) = seen.withLock({ $0 }),
            // Outside of runs there is no current mode.
            memory.word(at: loopAddress &+ UInt64(8 * layout.mode)) != currentMode,
            let after = memory.words(at: address(due), count: searchedWords),
            let waiting = memory.words(at: addresses[0], count: searchedWords),
            let three = memory.words(at: array, count: arrayWords)
        else { return nil }
        let fires =
            Double(monotonicNow()) + (CFRunLoopTimerGetNextFireDate(later[0]) - CFAbsoluteTimeGetCurrent()) * 1e9
        CFRunLoopTimerInvalidate(later[1])
        guard let two = memory.words(at: array, count: arrayWords) else { return nil }
        return layout.completed(
            loop: loopAddress, timer: waiting, fires: fires, firing: (during, after), array: (three, two))
    }

    /// Finds the list of some timers, on the way from the loop to its current mode to the mode's array.
    private static func findList(
        of timers: [UInt64], in loop: UInt64, _ memory: GuardedMemory
    ) -> (layout: RunLoopLayout, mode: UInt64, array: UInt64)? {
        for (index, mode) in (memory.words(at: loop, count: searchedWords) ?? []).enumerated() {
            for (list, array) in (memory.words(at: mode, count: searchedWords) ?? []).enumerated() {
                for (place, deque) in (memory.words(at: array, count: arrayWords) ?? []).enumerated()
                where items(deque, timers.count, memory) == timers {
                    var layout = RunLoopLayout()
                    (layout.mode, layout.timers, layout.deque) = (index, list, place)
                    return (layout, mode, array)
                }
            }
        }
        return nil
    }

    /// Adds what the words of a timer that waits tell, those of one in its callout and after it, and those of the array with
    /// three timers and with two; `nil` if one place is missing, or not the only one.
    private func completed(
        loop: UInt64, timer: [UInt64], fires: Double, firing: (during: [UInt64], after: [UInt64]),
        array: (three: [UInt64], two: [UInt64])
    ) -> RunLoopLayout? {
        func only(_ words: [UInt64], _ isRight: (Int) -> Bool) -> Int? {
            let places = words.indices.filter(isRight)
            return places.count == 1 ? places[0] : nil
        }
        guard let runLoop = only(timer, { timer[$0] == loop }),
            let dates = only(timer, { abs(Double(timer[$0]) - fires) < Self.dateError }),
            let intervals = only(timer, { timer[$0] == Self.learnedInterval.bitPattern }),
            let count = only(array.three, { array.three[$0] == 3 && array.two[$0] == 2 }),
            // The words after the type and the reference count, up to the lock.
            let bits = [2, 3].first(where: { (firing.during[$0] ^ firing.after[$0]).nonzeroBitCount == 1 })
        else { return nil }
        var layout = self
        (layout.runLoop, layout.date, layout.interval, layout.count) = (runLoop, dates, intervals, count)
        (layout.bits, layout.isFiring) = (bits, firing.during[bits] & ~firing.after[bits])
        layout.type = timer[0]
        return layout.isFiring == 0 ? nil : layout
    }
}
