import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct QuietProcessTests {
    private let wait = EpollWait(descriptor: 4, stackPointer: 1_000, programCounter: 2_000)
    private let own: Int32 = 9

    private func quiet(
        _ threads: [Int32], waiting: Set<Int32> = [], workers: [DispatchWorkers.Worker] = [], events: Set<Int32> = []
    ) -> QuietProcess? {
        QuietProcess(threads: threads, waiting: waiting, workers: workers) { thread in
            if events.contains(thread) { return .waitsForEvents(wait) }
            return thread == own ? .isNoticed : .unknown
        }
    }

    @Test func `threads that are all noticed are quiet`() throws {
        let found = quiet(
            [1, 2, 3, 9], waiting: [1], workers: [.init(thread: 2, isInDrain: false, isInPool: true)], events: [3])
        #expect(try #require(found).waits == [3: wait])
    }

    @Test func `a thread that may do anything is not quiet`() {
        #expect(quiet([9, 12]) == nil)
    }

    @Test func `a worker in a drain is not quiet`() {
        #expect(quiet([2], workers: [.init(thread: 2, isInDrain: true, isInPool: false)]) == nil)
    }

    /// It never ends its drain.
    @Test func `libdispatch's manager does not count, whatever it does`() {
        let workers = [DispatchWorkers.Worker(thread: 2, isInDrain: true, isInPool: false)]
        #expect(QuietProcess(threads: [2], waiting: [], workers: workers, manager: 2) { _ in .unknown } != nil)
        #expect(QuietProcess(threads: [2], waiting: [], workers: workers, manager: 3) { _ in .unknown } == nil)
    }

    @Test func `a worker outside of the pools may wait for events`() {
        #expect(quiet([2], workers: [.init(thread: 2, isInDrain: true, isInPool: false)], events: [2]) != nil)
        #expect(quiet([2], workers: [.init(thread: 2, isInDrain: true, isInPool: true)], events: [2]) == nil)
    }

    /// A worker whose name is that of a monitor's thread runs the app's items all the same.
    @Test func `a worker in a drain is never a monitor's own thread`() {
        #expect(quiet([9], workers: [.init(thread: 9, isInDrain: true, isInPool: false)]) == nil)
    }

    @Test func `a worker that has ended does not count`() {
        #expect(quiet([9], workers: [.init(thread: 2, isInDrain: true, isInPool: false)]) != nil)
    }
}

@Suite struct RestAttemptsTests {
    private let second: UInt64 = 1_000_000_000

    @Test func `attempts that fail become rare`() {
        var attempts = RestAttempts()
        var now: UInt64 = 0
        var pauses: [UInt64] = []
        for _ in 0..<9 {
            attempts.noteRefusal(at: now)
            pauses.append((attempts.next - now) / 1_000_000)
            now = attempts.next
        }
        #expect(pauses == [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000])
    }

    @Test func `a short rest counts as a failure, and a long one ends the pauses`() {
        var attempts = RestAttempts()
        attempts.noteRest(from: 0, to: second)
        #expect(attempts.next == second + RestAttempts.leastDelay)
        attempts.noteRest(from: 2 * second, to: 3 * second)
        #expect(attempts.next == 3 * second + 2 * RestAttempts.leastDelay)
        attempts.noteRest(from: 4 * second, to: 60 * second)
        #expect(attempts.next == 60 * second)
        attempts.noteRefusal(at: 61 * second)
        #expect(attempts.next == 61 * second + RestAttempts.leastDelay)
    }
}
