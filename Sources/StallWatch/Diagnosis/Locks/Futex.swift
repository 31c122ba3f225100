import LinuxSupport

/// The operations of futex(2), and the futex words that contain an owner.
enum Futex {
    enum Operation: Equatable {
        /// FUTEX_WAIT or FUTEX_WAIT_BITSET.
        case wait
        /// FUTEX_LOCK_PI or FUTEX_LOCK_PI2: the futex word contains the owner.
        case lockPriorityInheritance

        init?(_ argument: UInt64) {
            switch Futex.command(argument) {
            case 0, 9: self = .wait
            case 6, 13: self = .lockPriorityInheritance
            default: return nil
            }
        }
    }

    /// Returns whether the operation is FUTEX_WAIT, not FUTEX_WAIT_BITSET.
    static func isPlainWait(_ argument: UInt64) -> Bool { command(argument) == 0 }

    /// Returns whether other processes may wake the waiter: without FUTEX_PRIVATE_FLAG.
    static func isShared(_ argument: UInt64) -> Bool { argument & 128 == 0 }

    /// Returns the operation without FUTEX_PRIVATE_FLAG (128) and FUTEX_CLOCK_REALTIME (256).
    private static func command(_ argument: UInt64) -> UInt64 { argument & 0xffff_ffff & ~(128 | 256) }

    /// A futex word with an owner: FUTEX_TID_MASK, FUTEX_OWNER_DIED and FUTEX_WAITERS of linux/futex.h.
    struct Word {
        var owner: Int32
        var ownerDied: Bool
        var hasWaiters: Bool

        init(_ word: Int32) {
            owner = word & 0x3fff_ffff
            ownerDied = word & 0x4000_0000 != 0
            hasWaiters = word < 0
        }
    }
}
