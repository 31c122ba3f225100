import LinuxSupport
import StallReports
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

// Locks and deadlocks as causes.

extension CauseRulesTests {
    /// Three locks in a row, each for a third of the time, are not the last one's owner's fault.
    @Test func `the time of one wait is not that of others in the same function`() throws {
        func wait(at time: UInt64, for address: UInt64, of owner: Int32) throws -> Observation {
            var wait = try observe(at: time, in: "futex", [address, 0, 2, 0, 0, 0])
            wait.place = 1
            wait.lock = LockChain(
                lock: AwaitedLock(kind: .pthreadMutex, address: address, ownership: .thread(owner)),
                owners: [.init(thread: ThreadIdentity(id: owner, name: nil), isRunning: false)])
            return wait
        }
        let waits = [try wait(at: 50, for: 8, of: 7), try wait(at: 150, for: 16, of: 9)]
        let cause = concluded(blocked: 200, waits)
        #expect(cause.kind == .lock && cause.confidence == .certain)
        #expect(cause.waitTime == 100_000_000)
        // The lock went from one owner to the next one.
        #expect(concluded(blocked: 200, [waits[0], try wait(at: 150, for: 8, of: 9)]).waitTime == 100_000_000)
        #expect(concluded(blocked: 200, [waits[0], try wait(at: 150, for: 8, of: 7)]).waitTime == nil)
        #expect(concluded(blocked: 200, [waits[0]]).waitTime == nil)
        // Four fifths are not all of it.
        var last = try wait(at: 200, for: 16, of: 9)
        last.place = 2
        #expect(concluded(blocked: 200, [try wait(at: 120, for: 8, of: 7), last]).waitTime == 160_000_000)
    }

    private static let circle = LockChain(
        lock: AwaitedLock(kind: .once, hasTimeout: true, ownership: .thread(7)), isDeadlock: true)

    /// A lock with a time limit that ran out, after which the turn computed.
    @Test func aDeadlockThatEndedIsNotTheCauseOfTheRest() throws {
        var waiting = try observe(at: 20, in: "futex")
        waiting.lock = Self.circle
        let computing = try [60, 120, 180].map { try running(at: $0, in: nil) }
        #expect(concluded(cpu: 160, blocked: 40, [waiting] + computing).kind == .cpu)
        #expect(concluded(blocked: 40, [waiting]).kind == .deadlock)
        waiting.lock?.lock.hasTimeout = false
        #expect(concluded(cpu: 160, blocked: 40, [waiting] + computing).kind == .cpu)
    }

    /// Another thread let go of the lock: a mutex that stands for a semaphore, or the end of a canceled thread.
    @Test func `a circle that another thread has broken is no deadlock`() throws {
        var waiting = try observe(at: 50, in: "futex")
        waiting.lock = LockChain(
            lock: AwaitedLock(kind: .pthreadMutex, address: 8, ownership: .thread(2)), isDeadlock: true)
        var seen = evidence(blocked: 100, [waiting])
        #expect(CauseRules.conclusion(from: seen).kind == .deadlock)
        seen.goesOn = true
        let cause = CauseRules.conclusion(from: seen)
        #expect(cause.kind == .lock && cause.observation?.lock?.isDeadlock == false)
        // One with a time limit ends by itself.
        seen.observations[0].lock?.lock.hasTimeout = true
        #expect(CauseRules.conclusion(from: seen).kind == .deadlock)
    }

    @Test func aLockWithoutAConfirmedOwnerIsNotCertain() throws {
        var observation = try observe(at: 50, in: "futex")
        observation.lock = LockChain(
            lock: AwaitedLock(kind: .pthreadMutex, address: 8, ownership: .unknown("it moved")))
        #expect(concluded(blocked: 100, [observation]).confidence == .likely)
    }

    /// The last observation may be of a thread that was woken and has not run yet.
    @Test func `a lock that was seen stays known`() throws {
        var observation = try observe(at: 50, in: "futex")
        observation.lock = LockChain(lock: AwaitedLock(kind: .dispatchSemaphore, address: 8, ownership: .none))
        let woken = try observe(at: 90, in: "futex")
        func lock() -> StallReport.Lock? {
            StallReport.Cause(concluded(blocked: 100, [observation, woken])) { _, _ in 0 }.lock
        }
        #expect(lock()?.kind == .dispatchSemaphore && lock()?.hasTimeLimit == nil)
        observation.lock?.lock.hasTimeout = true
        #expect(lock()?.hasTimeLimit == true)
    }

    /// It was captured when it was about to wait, and its stack could not be captured later.
    @Test func `the call that an owner waits in tells more than where it ran before`() throws {
        func holding(at time: UInt64, _ stack: CapturedStack?, in call: String?) throws -> Observation {
            let wait = try call.flatMap { try observe(at: time, in: $0).activity.call }
            var observation = try observe(at: time, in: "futex")
            observation.lock = LockChain(
                lock: AwaitedLock(kind: .pthreadMutex, address: 8, ownership: .thread(2)),
                owners: [
                    LockChain.Owner(
                        thread: ThreadIdentity(id: 2, name: "holder"), stack: stack,
                        systemCall: wait.map { DescribedCall($0, memory: nil) }, isRunning: call == nil)
                ])
            return observation
        }
        func owner(_ observations: Observation...) -> LockChain.Owner? {
            concluded(blocked: 100, observations).observation?.lock?.owners.first
        }
        let running = try holding(at: 20, .stub([0x1000]), in: nil)
        #expect(owner(running, try holding(at: 90, nil, in: "nanosleep"))?.isRunning == false)
        // What is known of both is kept.
        let waiting = try holding(at: 20, .stub([0x1000]), in: "nanosleep")
        #expect(owner(waiting, try holding(at: 90, nil, in: "nanosleep"))?.stack != nil)
        // An owner that runs now is not said to wait, although of the wait more was known.
        #expect(owner(waiting, try holding(at: 90, .stub([0x2000]), in: nil))?.isRunning == true)
    }

    @Test func aCycleOfOwnersIsADeadlock() throws {
        var observation = try observe(at: 50, in: "futex")
        observation.lock = LockChain(
            lock: AwaitedLock(kind: .pthreadMutex, address: 8, ownership: .thread(2)), isDeadlock: true)
        #expect(concluded(blocked: 100, [observation]).kind == .deadlock)
        #expect(concluded(blocked: 100, [observation]).confidence == .certain)
        observation.lock?.lock.hasTimeout = true
        #expect(concluded(blocked: 100, [observation]).confidence == .likely)
    }
}
