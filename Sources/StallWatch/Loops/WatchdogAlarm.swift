import LinuxSupport
import Synchronization

/// How monitored loops and other threads wake the watchdog.
///
/// While loops turn, the watchdog sleeps until a deadline and nobody wakes it. While they all wait it is *parked*: asleep
/// without a deadline, with a flag up that says so. The first loop that begins a turn takes the flag down and posts the
/// semaphore; every other turn only reads the flag.
final class WatchdogAlarm: Sendable {
    private let semaphore = Semaphore()
    private let parked = Atomic<Bool>(false)
    /// Between what a loop tells and what it asks for, and the same on the watchdog.
    let fence = AsymmetricFence()

    /// Wakes the watchdog if it is parked.
    ///
    /// Otherwise one atomic load and no system call.
    func wakeIfParked() {
        fence.light()
        guard parked.load(ordering: .relaxed),
            parked.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        semaphore.post()
    }

    /// Wakes the watchdog wherever it sleeps.
    func ring() {
        semaphore.post()
    }

    /// Sleeps until `deadline` (monotonic nanoseconds) or until it is rung.
    ///
    /// - Returns: Whether it was rung.
    @discardableResult
    func sleep(until deadline: UInt64) -> Bool {
        semaphore.wait(until: deadline)
    }

    /// Sleeps until it is woken, unless `mayPark` says no once the flag is up.
    ///
    /// `mayPark` looks at every loop again. A turn that begins before that look is seen by it; one that begins after it
    /// sees the flag. The fences leave no third case.
    func park(if mayPark: () -> Bool) {
        parked.store(true, ordering: .sequentiallyConsistent)
        fence.heavy()
        if mayPark() {
            semaphore.wait()
        }
        parked.store(false, ordering: .sequentiallyConsistent)
    }
}
