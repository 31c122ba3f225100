import CLinux
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

/// Rests of a watchdog that ends with an event of a loop's thread.
@Suite(.serialized) struct ProcessRestTests {
    /// A timeout that suffices on any machine, in nanoseconds; it expires only if an event is lost.
    private static let timeout: UInt64 = 30_000_000_000

    /// The loop takes each event as soon as it is there, and waits again.
    @Test func `no event is missed, however soon the loop takes it`() throws {
        let loop = try EpollThread()
        defer { loop.stop() }
        let alarm = WatchdogAlarm()
        alarm.fence.prepare()
        let rest = ProcessRest(alarm: alarm) { true }
        let place = try #require(loop.place())
        var generator = SeededGenerator(seed: 7)
        var rests = 0
        for _ in 0..<1_000 {
            // Events from just before, so that the loop is about to wait, waits, or leaves its wait.
            for _ in 0..<Int.random(in: 0...2, using: &generator) { loop.send() }
            var isResting = false
            let before = monotonicNow()
            alarm.park(until: before + Self.timeout) {
                isResting = rest.prepare([.events(thread: loop.thread, place)], []) && rest.isUnchanged([])
                // This event comes at any moment after the answer, as far as the watchdog knows.
                if isResting { loop.send() }
                return isResting
            }
            if isResting {
                rests += 1
                try #require(monotonicNow() - before < Self.timeout, "rest \(rests) did not end")
            }
            rest.end(from: before, at: monotonicNow(), hasRested: isResting)
        }
        print("\(rests) rests of 1,000 attempts")
        #expect(rests > 100)
    }

    @Test func `a loop that runs does not rest`() throws {
        let loop = try EpollThread()
        let place = try #require(loop.place())
        loop.stop()
        let rest = ProcessRest(alarm: WatchdogAlarm()) { true }
        _ = rest.prepare([.events(thread: loop.thread, place)], [])
        #expect(!rest.isUnchanged([]))
    }

    @Test func `nothing is polled where a filter forbids it`() throws {
        let loop = try EpollThread()
        defer { loop.stop() }
        let place = try #require(loop.place())
        let rest = ProcessRest(alarm: WatchdogAlarm()) { false }
        #expect(!rest.prepare([.events(thread: loop.thread, place)], []))
    }

    /// Test programs have threads that nothing follows.
    @Test func `a queue does not rest while a thread may occupy it`() throws {
        let gate = Semaphore()
        let thread = try WorkerThread(name: "app") { gate.wait() }
        let rest = ProcessRest(alarm: WatchdogAlarm()) { true }
        #expect(!rest.prepare([.dispatch], []))
        #expect(!rest.isQuiet([], at: 1_000))
        #expect(!rest.isDue(at: 2_000))
        gate.post()
        thread.join()
    }
}
