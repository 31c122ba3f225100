import CLinux
import Glibc
import Synchronization

@testable import LinuxSupport

/// The point at which a stalling thread reports itself and waits to be resumed.
final class StallGate: Sendable {
    private let thread = Atomic<Int32>(0)
    private let isOpen = Atomic<Bool>(false)
    private let hasFinished = Atomic<Bool>(false)
    private let opened = LinuxSupport.Semaphore()

    static let shared = StallGate()

    /// Keeps the calling thread on CPU until ``open()``, for at most 20 s.
    func spin() {
        let end = monotonicNow() + 20_000_000_000
        thread.store(clinux_gettid(), ordering: .releasing)
        while !isOpen.load(ordering: .acquiring), monotonicNow() < end {}
    }

    /// Keeps the calling thread in a system call until ``open()``, for at most 20 s.
    func block() {
        let end = monotonicNow() + 20_000_000_000
        thread.store(clinux_gettid(), ordering: .releasing)
        // The wait may return early without a post; the test then captures the thread's next wait.
        while !isOpen.load(ordering: .acquiring), monotonicNow() < end { opened.wait(until: end) }
    }

    /// Marks the scenario as finished.
    func finish() { hasFinished.store(true, ordering: .releasing) }

    /// Waits up to 2 minutes for the stalling thread (other tests may keep the pool busy); `nil` if it does not appear.
    func waitForThread() -> Int32? {
        wait { thread.load(ordering: .acquiring) != 0 } ? thread.load(ordering: .relaxed) : nil
    }

    /// Resumes the stalling thread and waits for the scenario's end, for at most 2 minutes.
    ///
    /// Afterwards the gate is ready for the next scenario.
    func open() -> Bool {
        isOpen.store(true, ordering: .releasing)
        opened.post()
        let isOver = wait { hasFinished.load(ordering: .acquiring) }
        thread.store(0, ordering: .relaxed)
        isOpen.store(false, ordering: .relaxed)
        hasFinished.store(false, ordering: .relaxed)
        return isOver
    }

    private func wait(for condition: () -> Bool) -> Bool {
        for _ in 0..<120_000 {
            if condition() { return true }
            usleep(1000)
        }
        return false
    }
}
