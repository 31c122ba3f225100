internal import CLinux
import Synchronization

/// A pair of memory fences: one for loops, which costs them no instruction, and one for the watchdog.
///
/// If two threads each store one value and then load the other's, each needs a full fence in between. Without it both
/// can miss the other's store. A loop would execute that fence twice a turn, for half of the turn's cost (measured:
/// 16 ns of 28). Instead the watchdog makes the kernel execute the fence in every thread, once per stall and once per
/// park. If the kernel cannot do that, loops execute their own fence.
package struct AsymmetricFence: ~Copyable {
    /// Whether the watchdog's fence is enough for both sides.
    ///
    /// Never changes back to false.
    private let isPrepared = Atomic<Bool>(false)

    package init() {}

    /// Registers the process for the kernel's barrier.
    ///
    /// Until this succeeds, each side executes its own fence. Call it on the watchdog's thread: it can take some 10 ms.
    package func prepare() {
        isPrepared.store(clinux_prepare_barrier_in_all_threads(), ordering: .sequentiallyConsistent)
    }

    /// Executes the loop's side of the pair.
    ///
    /// Either the watchdog sees, after ``heavy()``, what the loop stored before this call, or the loop sees, after this
    /// call, what the watchdog stored before ``heavy()``.
    package func light() {
        if isPrepared.load(ordering: .relaxed) {
            clinux_compiler_barrier()
        } else {
            atomicMemoryFence(ordering: .sequentiallyConsistent)
        }
    }

    /// Executes the watchdog's side of the pair.
    package func heavy() {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if isPrepared.load(ordering: .relaxed) { _ = clinux_barrier_in_all_threads() }
    }
}
