import LinuxSupport
import StackCapture
import StallReports
internal import CLinux

/// Follows how the last owner in a chain of locks spends the time for which the others wait.
struct OwnerWatch {
    /// The number of readings kept; of later ones, only the last.
    static let maximumReadings = 64

    let owner: Int32
    private let lock: AwaitedLock
    private var probe: ThreadProbe?
    private var readings: [ThreadReading] = []
    /// Whether its nice value was seen to keep the owner from all CPUs; the number of looks.
    private var (yields, looks) = (false, 0)
    private static let maximumLooks = 4
    private static let files: ThreadProbe.Files = [.schedstat, .stat, .status]

    init?(_ ownership: LockChain) {
        guard let owner = ownership.owners.last?.thread.id, !ownership.isDeadlock else { return nil }
        (self.owner, self.lock) = (owner, ownership.lock)
        guard let reading = ThreadProbe.read(owner, Self.files, keeping: &probe) else { return nil }
        readings = [reading]
    }

    func follows(_ ownership: LockChain) -> Bool {
        ownership.owners.last?.thread.id == owner && ownership.lock == lock
    }

    /// Reads the owner, and the threads that are `ready` if it waits for a CPU.
    mutating func read(_ ready: () -> ReadyThreads) {
        guard let reading = ThreadProbe.read(owner, Self.files, keeping: &probe) else { return }
        if let last = readings.last, reading.competes(since: last), !yields, looks < Self.maximumLooks {
            looks += 1
            yields = ProcStat.yields(owner, among: ready())
        }
        if readings.count >= Self.maximumReadings { readings.removeLast() }
        readings.append(reading)
    }

    /// How the owner spent the time between the first and the last reading; `nil` if the system does not show it.
    func time(waiterNice: Int32?) -> OwnerTime? { OwnerTime(readings, waiterNice: yields ? waiterNice : nil) }
}

struct OwnerTime: Equatable, Sendable {
    let split: TimeSplit
    /// The nice values of the owner and of the thread that waits for it; `nil` if the system does not show them, and the
    /// second one also where nice values do not explain that the owner has no CPU.
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

extension ProcStat {
    /// Returns whether its nice value keeps a thread of this process from a CPU, as far as other threads of the process show it.
    fileprivate static func yields(_ thread: Int32, among ready: ReadyThreads) -> Bool {
        guard let threads = ready.threads,
            let own = readSmallFile("/proc/self/task/\(thread)/stat").flatMap(ProcStat.init)
        else { return false }
        return own.yields(
            to: threads.filter { $0.key != thread && $0.key != callingThread }.map(\.value),
            usable: Int(clinux_usable_processors(thread)), online: ready.online)
    }

    /// Returns whether others with a lower nice value are ready on each CPU that the thread may use, and no real-time thread.
    ///
    /// Of a thread that may use some of the CPUs it is not known which.
    func yields(to others: [ProcStat], usable: Int, online: Int) -> Bool {
        guard let processor, usable == 1 || usable >= online else { return false }
        let ready = others.filter { $0.isReady && (usable > 1 || $0.processor == processor) }
        let better = Set(ready.filter { 0..<max(priority, 0) ~= $0.priority }.compactMap(\.processor))
        let realTime = Set(ready.filter { $0.priority < 0 }.compactMap(\.processor))
        return better.subtracting(realTime).count >= min(usable, online)
    }
}
