import Glibc
import Synchronization

/// The request that blocks its thread.
enum Work {
    /// How long it blocks, in microseconds.
    private static let duration: UInt32 = 250_000
    private static let blocked = Atomic<Int>(-1)

    /// Chooses the request that blocks next.
    static func block(_ number: Int) { blocked.store(number, ordering: .releasing) }

    /// Carries out a request.
    static func run(_ number: Int) {
        guard blocked.load(ordering: .acquiring) == number else { return }
        usleep(duration)
    }
}
