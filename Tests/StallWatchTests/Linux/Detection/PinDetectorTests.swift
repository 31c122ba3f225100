import Testing

@testable import StackCapture
@testable import StallWatch

/// Threads of a pool, looked at every half of a second with a threshold of one second; times are in nanoseconds.
@Suite struct PinDetectorTests {
    private static let second: UInt64 = 1_000_000_000
    private static let queue: UInt64 = 0x1000

    private var detector = PinDetector(threshold: PinDetectorTests.second)
    private var now = 10 * PinDetectorTests.second
    private var cpu: [Int32: UInt64] = [:]
    private var slices: [Int32: UInt64] = [:]
    private var ready: [Int32: UInt64] = [:]
    /// The looks that show a hold which one wait does not prove, but for the last one.
    private static let unproven = PinDetector.looks - 1

    private struct Thread {
        var id: Int32 = 7
        var task: UInt64 = 91
        var state: Character = "S"
        /// The share of the time since the last look for which it was on a CPU.
        var share = 0.0
        var oldestItem: Int? = 0
        /// Whether it has run since the last look.
        var runs = false
        /// The share of that time for which it waited for a CPU, as far as it is counted.
        var ready = 0.0
        /// How often it has waited for anything else, since its first look.
        var waits: UInt64?
    }

    /// Looks some times, and returns the actions of the last look.
    @discardableResult
    private mutating func look(
        _ times: Int = 1, _ threads: Thread..., countingFrom: UInt64 = 0
    ) -> [PinDetector.Action] {
        var actions: [PinDetector.Action] = []
        for _ in 0..<times {
            let step = Self.second / 2
            now += step
            let sightings = threads.map { thread in
                cpu[thread.id, default: 0] += UInt64(Double(step) * thread.share)
                var reading = ThreadReading(time: now, onCPU: cpu[thread.id] ?? 0)
                reading.state = thread.state.asciiValue ?? 0
                ready[thread.id, default: 0] += UInt64(Double(step) * thread.ready)
                reading.runQueue = ready[thread.id] ?? 0
                reading.voluntarySwitches = thread.waits
                if thread.runs || thread.share > 0 { slices[thread.id, default: 1] += 1 }
                reading.slices = slices[thread.id, default: 1]
                return PinDetector.Sighting(
                    thread: thread.id, task: thread.task, pool: Self.queue, reading: reading,
                    oldestItem: thread.oldestItem)
            }
            actions = detector.decide(sightings, at: now, countingFrom: countingFrom)
        }
        return actions
    }

    private static func pin(_ actions: [PinDetector.Action]) -> PinDetector.Pin? {
        for case .begin(let pin) in actions { return pin }
        return nil
    }

    @Test mutating func `a task that blocks its thread for the threshold pins it`() throws {
        look()
        look(1, Thread())
        let first = now
        #expect(look(1, Thread()).isEmpty, "half of the threshold has passed")
        let pin = try #require(Self.pin(look(1, Thread())))
        #expect(pin.hold == .blocked && pin.task == 91 && pin.first.time == first)
        #expect(pin.uncertainty == Self.second / 2, "it was not there at the look before")
        #expect(detector.count(ofPool: Self.queue) == 1 && detector.count(ofPool: 0x2000) == 0)
        #expect(look(1, Thread()) == [.check(thread: 7)])
        let last = now
        #expect(look(1) == [.end(thread: 7, at: last)])
        #expect(detector.count(ofPool: Self.queue) == 0)
    }

    @Test(arguments: [(0.04, true), (0.06, false)])
    mutating func `a call that wakes again and again still blocks`(share: Double, isPinned: Bool) {
        #expect(look(Self.unproven, Thread(share: share)).isEmpty, "it may have been back by chance")
        #expect(detector.hasDoubts == isPinned)
        #expect((Self.pin(look(1, Thread(share: share))) != nil) == isPinned)
        #expect(!detector.hasDoubts)
    }

    @Test mutating func `a blocked call that is met awake goes on to block`() throws {
        look(1, Thread(share: 0.01))
        let first = now
        for _ in 1..<Self.unproven {
            look(1, Thread(share: 0.01))
            #expect(look(1, Thread(state: "R", share: 0.01)).isEmpty, "it shows nothing")
        }
        #expect(look(1, Thread(share: 0.2)).isEmpty, "it does something else")
        look(Self.unproven - 1, Thread(share: 0.01))
        let pin = try #require(Self.pin(look(1, Thread(share: 0.01))))
        #expect(pin.hold == .blocked && pin.first.time > first)
    }

    /// A task that sleeps in a call at most of the looks, and awaits in between.
    @Test mutating func `a task that is back at each second look is not pinned`() {
        for _ in 1...50 {
            #expect(look(2, Thread(runs: true)).isEmpty)
            look()
        }
    }

    @Test mutating func `another task at a look is no pin`() {
        for task in 1...20 as ClosedRange<UInt64> { #expect(look(2, Thread(task: task)).isEmpty) }
    }

    @Test mutating func `a thread that is ready and has no CPU is not pinned`() {
        #expect(look(10, Thread(state: "R", share: 0.02)).isEmpty)
        #expect(look(10, Thread(state: "R", share: 0.2, oldestItem: 0x50)).isEmpty, "a throttled container")
    }

    @Test mutating func `the time counts from the last look at which it computed`() throws {
        look(10, Thread(state: "R", share: 0.9, oldestItem: nil))
        let last = now
        #expect(look(1, Thread()).isEmpty)
        let pin = try #require(Self.pin(look(1, Thread())))
        #expect(pin.first.time == last && pin.uncertainty == 0)
    }

    @Test mutating func `a task that computes while the same task waits pins its thread`() throws {
        let thread = Thread(state: "R", share: 0.95, oldestItem: 0x50)
        #expect(look(Self.unproven, thread).isEmpty && detector.hasDoubts)
        #expect(try #require(Self.pin(look(1, thread))).hold == .computing)
        #expect(look(1, thread) == [.check(thread: 7)])
        // It waits for a CPU for a while.
        #expect(look(1, Thread(state: "R", share: 0.1, oldestItem: 0x50)) == [.check(thread: 7)])
        let last = now
        #expect(look(1, Thread(task: 92)) == [.end(thread: 7, at: last)])
    }

    @Test(arguments: [(0.1, 0.8, nil), (0.0, 0.0, 5)] as [(Double, Double, UInt64?)])
    mutating func `a task that computes with little of a CPU pins its thread`(
        share: Double, ready: Double, waits: UInt64?
    ) throws {
        let thread = Thread(state: "R", share: share, oldestItem: 0x50, ready: ready, waits: waits)
        look(Self.unproven, thread)
        #expect(try #require(Self.pin(look(1, thread))).hold == .computing)
    }

    @Test mutating func `a task that waits between two looks does not compute`() {
        for waits in 1...60 as ClosedRange<UInt64> {
            let thread = Thread(state: "R", share: 0.1, oldestItem: 0x50, ready: 0.1, waits: waits)
            #expect(look(1, thread).isEmpty)
        }
    }

    @Test mutating func `a task that computes is not pinned any more once another one waits longest`() {
        look(Self.unproven + 1, Thread(state: "R", share: 1, oldestItem: 0x50))
        let last = now
        #expect(detector.count(ofPool: Self.queue) == 1)
        #expect(
            look(1, Thread(state: "R", share: 1, oldestItem: 0x60)) == [.end(thread: 7, at: last)])
    }

    @Test mutating func `a task that computes is not pinned while others start`() {
        for item in 1...20 {
            #expect(look(1, Thread(state: "R", share: 1, oldestItem: item)).isEmpty)
        }
    }

    @Test mutating func `a task that computes while none waits is counted once`() {
        let thread = Thread(state: "R", share: 1)
        look(2, thread)
        #expect(look(1, thread) == [.count(thread: 7)])
        #expect(look(Self.unproven, thread).isEmpty)
        // From the first task that waits, another threshold has to pass.
        let waited = Thread(state: "R", share: 1, oldestItem: 0x50)
        #expect(look(2, waited).isEmpty)
        #expect(Self.pin(look(1, waited))?.hold == .computing)
    }

    @Test mutating func `nothing is said of a computing task where the queue cannot be read`() {
        #expect(look(10, Thread(state: "R", share: 1, oldestItem: nil)).isEmpty)
    }

    @Test mutating func `time in which the process was stopped does not count`() {
        look(2, Thread())
        #expect(look(1, Thread(), countingFrom: now).isEmpty)
        #expect(look(1, Thread()).isEmpty)
        #expect(Self.pin(look(1, Thread())) != nil)
        // A pin that lasts goes on.
        #expect(look(1, Thread(), countingFrom: now + 1) == [.check(thread: 7)])
    }

    @Test mutating func `an excused thread is not reported until its next task`() {
        look(2, Thread())
        #expect(Self.pin(look(1, Thread())) != nil)
        detector.excuse(7)
        #expect(look(10, Thread()).isEmpty)
        #expect(look(2, Thread(task: 92)).isEmpty)
        #expect(Self.pin(look(1, Thread(task: 92))) != nil)
    }

    @Test mutating func `a thread that stays blocked after the report of its pool is reported`() throws {
        look()
        look(2, Thread())
        #expect(Self.pin(look(1, Thread())) != nil)
        detector.leave(7)
        #expect(detector.hasLeft && detector.isQuiet)
        #expect(look(4, Thread()).isEmpty)
        let last = now
        detector.recall()
        #expect(!detector.hasLeft && !detector.isQuiet)
        #expect(look(1, Thread()).isEmpty, "half of the threshold has passed")
        let pin = try #require(Self.pin(look(1, Thread())))
        #expect(pin.hold == .blocked && pin.first.time == last)
        #expect(pin.uncertainty == 7 * Self.second / 2, "it was blocked for 3 s, and half a second before that")
        // One that is excused for another reason stays so.
        detector.excuse(7)
        detector.recall()
        #expect(look(4, Thread()).isEmpty)
    }

    @Test mutating func `a pin begins once more if there was no room for its report`() throws {
        look(2, Thread())
        let pin = try #require(Self.pin(look(1, Thread())))
        detector.postpone(7)
        #expect(detector.count(ofPool: Self.queue) == 1, "it counts in the others' reports")
        #expect(look(1, Thread()) == [.begin(pin)])
        #expect(look(1, Thread()) == [.check(thread: 7)], "it has one now")
        detector.postpone(7)
        let last = now
        #expect(look() == [.end(thread: 7, at: last)])
        look(2, Thread(task: 92))
        #expect(Self.pin(look(1, Thread(task: 92))) != nil)
        #expect(look(1, Thread(task: 92)) == [.check(thread: 7)])
    }

    @Test mutating func `each thread has its own pin`() {
        let threads = (Thread(), Thread(id: 8, task: 92), Thread(id: 9, task: 93, state: "R", share: 1))
        look(2, threads.0, threads.1, threads.2)
        let actions = look(1, threads.0, threads.1, threads.2)
        #expect(actions.count { if case .begin = $0 { true } else { false } } == 2)
        #expect(actions.contains(.count(thread: 9)) && detector.count(ofPool: Self.queue) == 2)
    }

    @Test(
        arguments: [
            (1, "read", 0, true), (1, "read", 3, false), (2, "read", 0, false), (1, "wait4", 9, true),
            (1, "ppoll", Block.address, true), (1, "ppoll", Block.address + 8, false), (1, "pselect6", 1, true),
            (1, "pselect6", 9, false), (1, "epoll_pwait", 5, false), (1, "rt_sigtimedwait", 9, true),
            (1, "futex", 0, false), (1, "fsync", 0, false),
        ] as [(UInt64, String, UInt64, Bool)])
    func `the main task of a tool may read its input or wait for a child`(
        task: UInt64, name: String, argument: UInt64, isExpected: Bool
    ) throws {
        let number = try #require((0..<500).first { SystemCallNames.current.name($0) == name })
        let call = SystemCall(number: number, arguments: [argument, 1], stackPointer: 0, programCounter: 0)
        func isOwn(_ call: SystemCall?, untilExit: Bool) -> Bool {
            ToolWait.isExpected(of: task, in: call, Block([0, 1, 3, 1])) { untilExit }
        }
        #expect(isOwn(call, untilExit: false) == isExpected)
        // The run loop of Process.waitUntilExit() polls.
        let isPoll = task == 1 && ["ppoll", "epoll_pwait", "pselect6"].contains(name)
        #expect(isOwn(call, untilExit: true) == (isExpected || isPoll))
        #expect(!isOwn(nil, untilExit: true))
    }
}
