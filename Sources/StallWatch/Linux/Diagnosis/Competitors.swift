internal import CLinux
import Glibc
import LinuxSupport
import StallReports

extension StallReport.Competitors {
    /// The largest number of threads whose states are read, some 15 us each.
    static let maximumThreads = 256

    /// Looks at the threads that are ready beside one that is, and keeps the least numbers of an `earlier` look.
    ///
    /// `nil` if this process has too many threads, if /proc does not show them, or if the thread may not run on all CPUs:
    /// threads on others do not compete.
    init?(beside thread: Int32, earlier: Self?) {
        let (all, online) = (ThreadIdentity.all(), sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        guard !all.isEmpty, all.count <= Self.maximumThreads, Int(clinux_usable_processors(thread)) >= online else {
            return nil
        }
        let before = Self.readyThreads(readSmallFile("/proc/loadavg"))
        let ready = all.filter {
            readSmallFile("/proc/self/task/\($0)/stat").flatMap(ProcStat.init)?.state == UInt8(ascii: "R")
        }
        // One that begins or ceases to be ready meanwhile is none of others.
        let most = min(before, Self.readyThreads(readSmallFile("/proc/loadavg")))
        self.init(
            own: min(ready.count { $0 != thread && $0 != callingThread }, earlier?.own ?? .max),
            others: min(max(most - ready.count, 0), earlier?.others ?? .max), processors: online)
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
