import Testing

@testable import StallWatch

/// Which loops a pass polls, with times that the test sets.
@Suite struct PollScheduleTests {
    private static let threshold: UInt64 = 100_000_000

    private let alarm = WatchdogAlarm()
    private var schedule = PollSchedule()
    private var recorders: [TurnRecorder] = []

    private mutating func add(_ count: Int = 1) {
        for _ in 0..<count {
            let recorder = TurnRecorder(alarm: alarm)
            recorder.setThreshold(Self.threshold)
            recorders.append(recorder)
            schedule.add(recorder)
        }
    }

    /// Returns the loops that a pass polls; a poll finds a loop that turns and is due after `wait`, or one that rests.
    private mutating func pass(at time: UInt64, wait: UInt64? = nil, isPlain: Bool = false) -> [Int] {
        recorders.indices.filter { index in
            guard schedule.needsPoll(index, at: time) else { return false }
            let outcome = PollOutcome(
                due: wait.map { time + $0 } ?? .max, mark: recorders[index].mark,
                plainInterval: isPlain ? Self.threshold : nil, isResting: wait == nil,
                mayPark: recorders[index].mark.began == 0)
            schedule.update(index, outcome, at: time)
            return true
        }
    }

    @Test mutating func `a loop is polled when it is due, and after half of that time with another one`() {
        add()
        #expect(pass(at: 1_000, wait: 1_000) == [0])
        #expect(schedule.next == 2_000)
        #expect(pass(at: 1_499, wait: 1_000) == [] && schedule.next == 2_000)
        add()
        #expect(pass(at: 1_499, wait: 600) == [1])
        #expect(schedule.next == 2_000)
        #expect(pass(at: 2_000, wait: 1_000) == [0, 1], "the second one is due soon, too")
        #expect(schedule.next == 3_000)
    }

    @Test mutating func `ten thousand loops that rest are polled once`() {
        add(10_000)
        #expect(pass(at: 1_000).count == 10_000)
        #expect(schedule.next == .max && schedule.mayPark)
        #expect(schedule.sleep(at: 1_000, until: schedule.next) == WatchdogSleep(deadline: .max, isParked: true))
        recorders[4_711].beginTurn(at: 2_000)
        #expect(!schedule.mayPark)
        #expect(schedule.firstBegin == 2_000)
        #expect(pass(at: 3_000) == [4_711])
    }

    /// Beside a loop in a turn the watchdog is not parked, so a turn that begins says nothing.
    @Test mutating func `loops that rest are looked at before a turn can be late`() {
        add(2)
        recorders[0].beginTurn(at: 1)
        for index in 0...1 {
            _ = schedule.needsPoll(index, at: 1_000)
            let isOn = index == 0
            let outcome = PollOutcome(
                due: isOn ? 10 * Self.threshold : .max, mark: recorders[index].mark, isResting: !isOn, mayPark: !isOn)
            schedule.update(index, outcome, at: 1_000)
        }
        let sleep = schedule.sleep(at: 1_000, until: schedule.next)
        #expect(sleep == WatchdogSleep(deadline: 1_000 + Self.threshold, isParked: false))
        #expect(pass(at: 1_001) == [])
        recorders[1].beginTurn(at: 2_000)
        #expect(pass(at: 1_002) == [1])
    }

    @Test mutating func `a loop that rests while another one serves it is polled in each pass`() {
        add(2)
        for index in 0...1 {
            let outcome = PollOutcome(
                due: .max, mark: recorders[index].mark, isResting: true, isForeign: index == 0, mayPark: true)
            schedule.update(index, outcome, at: 1_000)
        }
        let arePolled = (0...1).map { schedule.needsPoll($0, at: 1_001) }
        #expect(arePolled == [true, false])
        #expect(schedule.next == .max && schedule.mayPark, "it is no reason for a pass")
    }

    @Test mutating func `a loop that called the watchdog is polled at once`() {
        add(2)
        #expect(pass(at: 1_000, wait: 10 * Self.threshold) == [0, 1])
        recorders[1].callWatchdog()
        #expect(alarm.sleep(until: 0))
        #expect(pass(at: 1_001, wait: 10 * Self.threshold) == [1])
        #expect(pass(at: 1_002) == [])
    }

    @Test mutating func `a plain loop between turns is polled by its mark alone`() {
        add()
        #expect(pass(at: 1_000, wait: Self.threshold, isPlain: true) == [0])
        var time = 1_000 + Self.threshold
        recorders[0].beginTurn(at: time - 5)
        recorders[0].endTurn(at: time - 4)
        #expect(pass(at: time) == [])
        #expect(schedule.next == time + Self.threshold, "it has turned, so it is likely to turn again")
        #expect(!schedule.sleep(at: time, until: schedule.next).isParked)
        time = schedule.next
        #expect(pass(at: time) == [])
        #expect(schedule.next == .max && schedule.mayPark, "it has not turned")
        recorders[0].beginTurn(at: time + 1)
        #expect(pass(at: time + 2) == [0])
    }

    @Test mutating func `a loop that is removed no longer counts`() {
        add(3)
        recorders[1].beginTurn(at: 1)
        #expect(pass(at: 1_000).count == 3)
        let removed = recorders.remove(at: 1)
        schedule.remove { $0 === removed }
        #expect(schedule.firstBegin == nil && schedule.mayPark)
        #expect(pass(at: 2_000) == [])
        #expect(schedule.sleep(at: 2_000, until: 3 * Self.threshold).isParked)
    }
}
