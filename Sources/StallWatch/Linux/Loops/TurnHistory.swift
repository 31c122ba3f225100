import Synchronization

/// The last longer turns of one loop, in fixed memory: 6 KiB for the usual capacity.
///
/// Turns shorter than ``shortest`` are not kept, because a busy loop would fill the memory with a few milliseconds of them. A
/// short turn therefore costs the loop one comparison, and a longer one four stores. Only the loop's thread writes, without a lock
/// or an allocation. Any thread may read.
final class TurnHistory: Sendable {
    struct Turn: Equatable, Sendable {
        /// When the turn began, in monotonic nanoseconds.
        var began: UInt64
        /// When it ended; `nil` while it lasts.
        var ended: UInt64?
        /// How long the loop had been between turns before it, in nanoseconds; 0 if it came right after another one.
        var waited: UInt64
    }

    static let capacity = 256
    /// The shortest turn that is kept, in nanoseconds: 1 ms.
    static let shortest: UInt64 = 1_000_000

    private static let wordsPerTurn = 3
    private let capacity: Int
    private let words: AtomicWords
    private let kept = Atomic<UInt64>(0)

    init(capacity: Int = TurnHistory.capacity) {
        self.capacity = capacity
        words = AtomicWords(count: (capacity + 1) * Self.wordsPerTurn)
    }

    /// One more, because the loop may be replacing the oldest turn while another thread reads.
    private var slots: Int { capacity + 1 }

    /// The number of turns so far, kept or replaced since.
    var count: UInt64 { kept.load(ordering: .acquiring) }

    func record(began: UInt64, ended: UInt64, previousEnd: UInt64) {
        guard ended &- began >= Self.shortest else { return }
        let number = kept.load(ordering: .relaxed)
        let turn = words(of: number)
        // Releasing, because a reader that sees one of these words has to see that the earlier turns were kept.
        turn[0].store(began, ordering: .releasing)
        turn[1].store(ended, ordering: .releasing)
        turn[2].store(previousEnd == 0 || previousEnd > began ? 0 : began - previousEnd, ordering: .releasing)
        kept.store(number &+ 1, ordering: .releasing)
    }

    /// Returns the turns that ended at or after `time`, oldest first, without the first `skipped` of all.
    func turns(endedSince time: UInt64, skipping skipped: UInt64 = 0) -> [Turn] {
        let before = kept.load(ordering: .acquiring)
        let first = min(max(before - min(before, UInt64(capacity)), skipped), before)
        let turns = (first..<before).map { number in
            let words = words(of: number)
            return Turn(
                began: words[0].load(ordering: .acquiring), ended: words[1].load(ordering: .acquiring),
                waited: words[2].load(ordering: .acquiring)
            )
        }
        // Meanwhile the loop may have replaced the oldest turns, and may be replacing one more.
        let after = kept.load(ordering: .acquiring)
        let firstWhole = after &+ 1 - min(after &+ 1, UInt64(slots))
        let replaced = Int(min(firstWhole - min(firstWhole, first), UInt64(turns.count)))
        return turns.dropFirst(replaced).filter { ($0.ended ?? .max) >= time }
    }

    private func words(of number: UInt64) -> UnsafeMutablePointer<Atomic<UInt64>> {
        // In bounds: the remainder is below the number of slots.
        words.start + Int(number % UInt64(slots)) * Self.wordsPerTurn
    }
}
