import LinuxSupport
import StackCapture
import StallReports

/// Follows how the last owner in a chain of locks spends the time for which the others wait.
struct OwnerWatch {
    /// The number of readings kept; of later ones, only the last.
    static let maximumReadings = 64

    let owner: Int32
    private let lock: AwaitedLock
    private let probe: ThreadProbe
    private var readings: [ThreadReading] = []

    init?(_ ownership: LockChain) {
        guard let owner = ownership.owners.last?.thread.id, !ownership.isDeadlock,
            let probe = try? ThreadProbe(thread: owner, files: [.schedstat, .stat, .status])
        else { return nil }
        (self.owner, self.lock, self.probe) = (owner, ownership.lock, probe)
        read()
    }

    func follows(_ ownership: LockChain) -> Bool {
        ownership.owners.last?.thread.id == owner && ownership.lock == lock
    }

    mutating func read() {
        guard let reading = probe.read() else { return }
        if readings.count >= Self.maximumReadings { readings.removeLast() }
        readings.append(reading)
    }

    /// How the owner spent the time between the first and the last reading; `nil` if the system does not show it.
    func time(waiterNice: Int32?) -> OwnerTime? { OwnerTime(readings, waiterNice: waiterNice) }
}

struct OwnerTime: Equatable, Sendable {
    let split: TimeSplit
    /// The nice values of the owner and of the thread that waits for it; `nil` if the system does not show them.
    let nice, waiterNice: Int32?

    /// Concludes from ascending readings of the owner; `nil` with fewer than two, or one that lacks the run-queue time.
    init?(_ readings: [ThreadReading], waiterNice: Int32?) {
        guard let first = readings.first, let last = readings.last, last.time > first.time,
            readings.allSatisfy(\.showsRunQueue),
            let split = TimeSplit(readings: readings, from: first.time, to: last.time)
        else { return nil }
        self.split = split
        nice = last.nice
        self.waiterNice = waiterNice
    }

    /// Whether the owner waited for a CPU for most of the time and has a greater nice value than the waiting thread.
    var isPriorityInversion: Bool {
        guard let nice, let waiterNice, nice > waiterNice else { return false }
        return Double(split.runQueue) >= Double(split.duration) * StallReport.OwnerTime.starvedShare
    }
}
