/// The evidence of whether a running thread is in a system call: where its last clock tick went.
///
/// A thread that has got no tick since is where it was: it waits for a CPU.
struct KernelPresence: Equatable {
    /// The place of a thread's last tick.
    private enum Place: Equatable {
        case user, kernel
        /// The thread has got no tick since this time, in monotonic nanoseconds; `nil` if no ticks were read before.
        case unknown(since: UInt64?)
    }

    /// The time without a tick after which a thread counts as one that has got no CPU: one tick, and half a tick because
    /// the kernel rounds user and system time down.
    static let longestWithoutTick: UInt64 = 15_000_000

    private var ticks: CPUTicks
    private var turn: UInt64?
    private var place: Place

    /// Creates the evidence from the first ticks of a thread.
    ///
    /// - Parameters:
    ///   - ticks: The ticks.
    ///   - turn: The turn in which they were read; `nil` if they were read for a capture.
    init(_ ticks: CPUTicks, turn: UInt64?) {
        self.ticks = ticks
        self.turn = turn
        place = .unknown(since: turn.map { _ in ticks.readAt })
    }

    /// Takes in later ticks; what went before a new turn shows nothing.
    mutating func note(_ latest: CPUTicks, turn latestTurn: UInt64) {
        guard latestTurn == turn else { return self = KernelPresence(latest, turn: latestTurn) }
        note(latest)
    }

    /// Takes in later ticks of the same turn.
    mutating func note(_ latest: CPUTicks) {
        if latest.system > ticks.system {
            place = .kernel
        } else if latest.user > ticks.user {
            place = .user
        }
        ticks = latest
    }

    /// Notes that the thread was seen outside of system calls.
    mutating func noteUserMode() { place = .user }

    /// Whether the thread may be in a system call.
    var mayBeInKernel: Bool {
        switch place {
        case .user: false
        case .kernel: true
        case .unknown(let since): since.map { ticks.readAt &- $0 > Self.longestWithoutTick } ?? true
        }
    }
}
