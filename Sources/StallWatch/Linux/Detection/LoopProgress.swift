import LinuxSupport
import StallReports
import Synchronization

/// Whether a loop makes progress, as the watchdog found at its last poll.
struct LoopProgress: Sendable, Equatable {
    typealias State = LoopHealthState

    /// Of several monitors of a loop, the last state in the list counts.
    private static let order: [State] = [.starting, .ended, .running, .held, .stalled]

    var label: String
    var state: State
    /// When the state began, in monotonic nanoseconds: for a stall, when the age of its turn begins to count.
    var since: UInt64

    /// Returns one element per label, in the order of their first elements.
    static func merged(_ all: [LoopProgress]) -> [LoopProgress] {
        var merged: [LoopProgress] = []
        var places: [String: Int] = [:]
        for progress in all {
            guard let place = places[progress.label] else {
                places[progress.label] = merged.count
                merged.append(progress)
                continue
            }
            let other = merged[place]
            if progress.rank > other.rank || progress.rank == other.rank && progress.since < other.since {
                merged[place] = progress
            }
        }
        return merged
    }

    private var rank: Int { Self.order.firstIndex(of: state) ?? 0 }
}

struct ProgressReading: Sendable, Equatable {
    var loops: [LoopProgress]
    /// When the pass ended, in monotonic nanoseconds.
    var time: UInt64
    var isPaused: Bool
}

/// A question to the watchdog, which answers at the end of its next pass.
final class ProgressRequest: Sendable {
    private let reading = Mutex<ProgressReading?>(nil)
    private let answered = Semaphore()

    func answer(_ reading: ProgressReading?) {
        self.reading.withLock { $0 = reading }
        answered.post()
    }

    /// Waits for the answer until `deadline`, in monotonic nanoseconds; returns `nil` if there is none.
    func wait(until deadline: UInt64) -> ProgressReading? {
        answered.wait(until: deadline)
        return reading.withLock { $0 }
    }
}
