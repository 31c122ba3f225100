internal import CLinux
import LinuxSupport
import Synchronization

/// Lets monitored loops and other threads wake the watchdog.
///
/// While loops turn, the watchdog sleeps until a deadline, and no loop wakes it. While all loops wait, the watchdog is
/// *parked*: it sleeps without a deadline, and a flag says so. The first loop that begins a turn clears the flag and
/// rings. Every other turn only reads the flag. The alarm is an event: however often it rings, it ends one sleep.
final class WatchdogAlarm: Sendable {
    private let semaphore = Semaphore()
    private let parked = Atomic<Bool>(false)
    /// Whether the alarm has rung since the last sleep that it ended; only then the semaphore has a post, and only one.
    private let rang = Atomic<Bool>(false)
    let fence = AsymmetricFence()

    /// Wakes the watchdog if it is parked; otherwise it costs one atomic load and no system call.
    func wakeIfParked() {
        fence.light()
        guard parked.load(ordering: .relaxed),
            parked.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        ring()
    }

    /// Wakes the watchdog from any sleep: a system call only if the alarm has not rung yet.
    func ring() {
        guard !rang.exchange(true, ordering: .sequentiallyConsistent) else { return }
        semaphore.post()
    }

    /// Sleeps until a deadline in monotonic nanoseconds, or until the alarm rings; returns whether it did.
    @discardableResult
    func sleep(until deadline: UInt64) -> Bool {
        guard semaphore.wait(until: deadline) else { return false }
        // Before the watchdog looks at what the callers have changed: who rings from now on wakes it again.
        _ = rang.exchange(false, ordering: .sequentiallyConsistent)
        return true
    }

    /// Sleeps until the alarm rings or a deadline, unless `mayPark` returns `false` once the flag is set: it inspects
    /// every loop again, a turn that begins later sees the flag, and the fences exclude a third case.
    func park(until deadline: UInt64 = .max, if mayPark: () -> Bool) {
        parked.store(true, ordering: .sequentiallyConsistent)
        fence.heavy()
        if mayPark() { sleep(until: deadline) }
        parked.store(false, ordering: .sequentiallyConsistent)
    }
}

/// A pair of memory fences: one for loops, which costs them no instruction, and one for the watchdog.
///
/// If two threads each store one value and then load the other's, each needs a full fence in between. Without it both
/// can miss the other's store. A loop would execute that fence twice a turn, for half of the turn's cost (measured:
/// 16 ns of 28). Instead the watchdog makes the kernel execute the fence in every thread, once per stall and once per
/// park. If the kernel cannot do that, loops execute their own fence.
struct AsymmetricFence: ~Copyable {
    /// Whether the watchdog's fence is enough for both sides, once and for all.
    private let isPrepared = Atomic<Bool>(false)

    /// Registers for the kernel's barrier, which can take the watchdog some 10 ms; until then each side has its fence.
    package func prepare() {
        isPrepared.store(clinux_prepare_barrier_in_all_threads(), ordering: .sequentiallyConsistent)
    }

    /// Executes the loop's side: either the watchdog sees after ``heavy()`` what the loop stored before this call, or
    /// the loop sees after this call what the watchdog stored before ``heavy()``.
    package func light() {
        if isPrepared.load(ordering: .relaxed) {
            clinux_compiler_barrier()
        } else {
            atomicMemoryFence(ordering: .sequentiallyConsistent)
        }
    }

    package func heavy() {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if isPrepared.load(ordering: .relaxed) { _ = clinux_barrier_in_all_threads() }
    }
}
