internal import CLinux
import Synchronization

/// Two memory fences that belong together: one for loops, which costs them no instruction, and one for the watchdog.
///
/// Two threads that each store one thing and then load the other's need a full fence between the two, or both can miss
/// what the other has stored. A loop would pay for that twice a turn, with half of what the turn costs (measured: 16 ns of
/// 28). Instead the watchdog, which needs it once a stall and once a park, has the kernel execute the fence in every
/// thread. Where the kernel cannot, loops execute their own.
package struct AsymmetricFence: ~Copyable {
    /// Whether the watchdog's fence is enough for both.
    ///
    /// Once it is, it stays so.
    private let isPrepared = Atomic<Bool>(false)

    package init() {}

    /// Finds out whether the kernel does it.
    ///
    /// Until then, and for ever where it does not, each side executes its own fence. On the watchdog's thread, for it can
    /// take some 10 ms.
    package func prepare() {
        isPrepared.store(clinux_prepare_barrier_in_all_threads(), ordering: .sequentiallyConsistent)
    }

    /// The loop's side: what it stored before is seen after ``heavy()``, or it sees what was stored before that.
    package func light() {
        if isPrepared.load(ordering: .relaxed) {
            clinux_compiler_barrier()
        } else {
            atomicMemoryFence(ordering: .sequentiallyConsistent)
        }
    }

    /// The watchdog's side.
    package func heavy() {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if isPrepared.load(ordering: .relaxed) { _ = clinux_barrier_in_all_threads() }
    }
}
