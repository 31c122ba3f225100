/// The evidence of whether a running thread is in a system call: where its last clock tick went.
///
/// A thread that has got no tick since is where it was: it waits for a CPU.
struct KernelPresence: Equatable {
    private enum Place: Equatable {
        case user, kernel
        /// No tick was seen yet.
        case unknown
    }

    private var time: TickedCPUTime
    private var turn: UInt64?
    private var place = Place.unknown

    /// Creates the evidence from the first reading of a thread.
    ///
    /// - Parameters:
    ///   - time: The thread's CPU time.
    ///   - turn: The turn in which it was read; `nil` if it was read for a capture.
    init(_ time: TickedCPUTime, turn: UInt64?) {
        self.time = time
        self.turn = turn
    }

    /// Takes in a later reading; what went before a new turn shows nothing.
    mutating func note(_ latest: TickedCPUTime, turn latestTurn: UInt64) {
        guard latestTurn == turn else { return self = KernelPresence(latest, turn: latestTurn) }
        note(latest)
    }

    /// Takes in a later reading of the same turn.
    mutating func note(_ latest: TickedCPUTime) {
        if latest.system > time.system {
            place = .kernel
        } else if latest.user > time.user {
            place = .user
        }
        time = latest
    }

    /// Notes that the thread was seen outside of system calls.
    mutating func noteUserMode() { place = .user }

    /// Whether the thread may be in a system call.
    var mayBeInKernel: Bool { place != .user }
}
