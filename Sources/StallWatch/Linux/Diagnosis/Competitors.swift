import Glibc
import LinuxSupport
import StallReports
internal import CLinux

/// The threads that are ready at one moment.
struct ReadyThreads {
    /// By the ids of those of this process; `nil` if it has too many threads, or if /proc does not show them.
    private(set) var threads: [Int32: ProcStat]?
    /// How many the whole machine has.
    private(set) var ofMachine = 0
    /// The number of CPUs.
    let online = sysconf(Int32(_SC_NPROCESSORS_ONLN))

    init() {
        let all = ThreadIdentity.all()
        guard !all.isEmpty, all.count <= StallReport.Competitors.maximumThreads else { return }
        let before = StallReport.Competitors.readyThreads(readSmallFile("/proc/loadavg"))
        var threads: [Int32: ProcStat] = [:]
        for thread in all {
            guard let stat = readSmallFile("/proc/self/task/\(thread)/stat").flatMap(ProcStat.init), stat.isReady else {
                continue
            }
            threads[thread] = stat
        }
        self.threads = threads
        // One that begins or ceases to be ready meanwhile is none of others.
        ofMachine = min(before, StallReport.Competitors.readyThreads(readSmallFile("/proc/loadavg")))
    }
}

extension StallReport.Competitors {
    /// The largest number of threads whose states are read, some 15 us each.
    static let maximumThreads = 256

    /// Counts the threads that are ready beside one that is, and keeps the least numbers of an `earlier` look.
    ///
    /// If the thread may not run on all CPUs, only threads on its own compete: which of other processes are there is not known,
    /// and none of them counts. `nil` if this process has too many threads, or if /proc does not show them.
    init?(beside thread: Int32, among ready: ReadyThreads, earlier: Self?) {
        guard let threads = ready.threads else { return nil }
        let online = ready.online
        let usable = min(Int(clinux_usable_processors(thread)), online)
        guard usable > 0 else { return nil }
        // The CPU on which each ran last; -1 if that is not shown.
        let rivals = threads.filter { $0.key != thread && $0.key != callingThread }.map { $0.value.processor ?? -1 }
        let own = usable == online ? rivals.count : clinux_count_usable(thread, rivals, rivals.count)
        let others = usable == online ? max(ready.ofMachine - threads.count, 0) : 0
        self.init(
            own: min(own, earlier?.own ?? .max), others: min(others, earlier?.others ?? .max), processors: usable)
    }

    /// Whether there are more threads than CPUs: fewer do not explain that one had none.
    var areEnough: Bool { own + others >= processors }

    /// Parses how many threads of the machine are ready, as in `0.5 0.5 0.5 3/400 4711`; 0 if that is missing.
    static func readyThreads(_ loadAverages: String?) -> Int {
        var cursor = ByteCursor(loadAverages ?? "")
        cursor.skipWords(3)
        return Int(clamping: cursor.number() ?? 0)
    }
}
