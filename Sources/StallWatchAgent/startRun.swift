import Foundation
import Glibc
import LinuxSupport
import StallReports
import StallWatch
import Synchronization

/// Starts the monitor of a program of `stallwatch run`; the result is 0, or 1 after a failure.
///
/// CPreload calls it by name, once, on its own thread. `threshold` is in nanoseconds; `loops` is the sum of values of
/// `enum cpreload_loop`, without GLib's; `reason`, of `size` bytes, receives the reason, ended by a zero byte.
@_cdecl("stallwatch_run_start")
public func startRun(
    _ threshold: UInt64, _ loops: Int32, _ output: UnsafePointer<CChar>, _ reason: UnsafeMutablePointer<CChar>,
    _ size: Int
) -> Int32 {
    do throws(StallWatchError) {
        let monitor = try RunMonitor(
            threshold: .nanoseconds(Int64(clamping: threshold)), loops: loops, output: pathText(cString: output))
        RunMonitor.current.withLock { $0 = monitor }
        return 0
    } catch {
        store("the monitor could not start: \(error.description)", in: reason, size: size)
        return 1
    }
}

/// The size of the buffer for what a loop's thread works on, in bytes.
private let sourceBytes = 144

/// Watches GLib's default main context; the result is the handle for `stallwatch_begin_turn`, `nil` after a failure.
///
/// `functions` has the first and the following address of each function of which one has a frame on the stack while the
/// context runs, in `count` pairs, equal ones for an unknown function. The watchdog calls `isFollowed`, which returns 0
/// when the context does not report its turns, and `source`, which stores what the loop's thread works on, or an empty
/// text. `reason`, of `size` bytes, receives the reason after a failure, ended by a zero byte.
@_cdecl("stallwatch_run_watch_glib")
public func watchGLib(
    _ functions: UnsafePointer<UInt64>, _ count: Int, _ isFollowed: @escaping @convention(c) @Sendable () -> Int32,
    _ source: @escaping @convention(c) @Sendable (UnsafeMutablePointer<CChar>, Int) -> Void,
    _ reason: UnsafeMutablePointer<CChar>, _ size: Int
) -> UnsafeMutableRawPointer? {
    let ranges = (0..<count).map { min(functions[2 * $0], functions[2 * $0 + 1])..<functions[2 * $0 + 1] }
    // Without one of them, a stack cannot show that the loop does not run.
    let known = ranges.contains { $0.isEmpty } ? [] : ranges
    do throws(StallWatchError) {
        return try RunMonitor.current.withLock { monitor throws(StallWatchError) in
            try monitor?.watchGLib(functions: known) {
                isFollowed() != 0
            } source: {
                withUnsafeTemporaryAllocation(of: CChar.self, capacity: sourceBytes) { name in
                    guard let start = name.baseAddress else { return nil }
                    source(start, name.count)
                    let text = String(validatingCString: start)
                    return text?.isEmpty == false ? text : nil
                }
            }
        }
    } catch {
        store("the GLib loop could not be watched: \(error.description)", in: reason, size: size)
        return nil
    }
}

/// Stops the monitor, as `thread` ends the program, and stores how many stalls it has found.
///
/// `text`, of `size` bytes, receives the sentence, ended by a zero byte.
///
/// The result is 1, or 0 if there was no stall and there is no sentence.
@_cdecl("stallwatch_run_finish")
public func finishRun(_ thread: Int32, _ text: UnsafeMutablePointer<CChar>, _ size: Int) -> Int {
    guard let sentence = RunMonitor.current.withLock({ $0 })?.finish(thread) else { return 0 }
    store(sentence, in: text, size: size)
    return 1
}

struct RunMonitor {
    static let current = Mutex<RunMonitor?>(nil)

    private let monitor: StallMonitor
    private let output: String
    /// Keeps the probe of GLib's main context, whose poll function has its address.
    private var probe: LoopProbe?

    init(threshold: Duration, loops: Int32, output: String) throws(StallWatchError) {
        let configuration = StallMonitor.Configuration(threshold: threshold, outputs: [.directory(output)])
        monitor = try StallMonitor(configuration)
        self.output = output
        // The sum of CPRELOAD_LOOP_RUN_LOOP, 1, and CPRELOAD_LOOP_MAIN_QUEUE, 2.
        switch loops & 3 {
        case 1: try monitor.watch(.runLoop(.main, label: "main"))
        case 2: try monitor.watch(.mainQueue)
        case 3: try monitor.watch(.main)
        default: break
        }
        try monitor.start()
    }

    /// Returns a handle that is valid until the process ends; `functions` is empty if they are unknown.
    mutating func watchGLib(
        functions: [Range<UInt64>], isFollowed: @escaping @Sendable () -> Bool,
        source: @escaping @Sendable () -> String?
    ) throws(StallWatchError) -> UnsafeMutableRawPointer {
        let probe = LoopProbe(label: "glib", work: source) { addresses in
            guard isFollowed() else { return false }
            guard let addresses, !functions.isEmpty else { return true }
            return addresses.contains { address in functions.contains { $0.contains(address) } }
        }
        try monitor.watch(.probe(probe))
        self.probe = probe
        return probe.handle
    }

    /// Stops the monitor, within 5 seconds; returns a sentence about the stalls, `nil` if there were none.
    func finish(_ thread: Int32) -> String? {
        monitor.stop(inTurnOf: thread)
        let statistics = monitor.statistics
        guard statistics.stalls > 0 else { return nil }
        let count = statistics.stalls == 1 ? "1 stall" : "\(statistics.stalls) stalls"
        let failure = statistics.lastWriteError.map { ", but not each is there: \($0)" } ?? ""
        return "\(count), see: stallwatch show \(output)\(failure)"
    }
}

/// Captures all threads of this process and writes their report into a directory; the result is 0, or 1 without one.
///
/// CPreload calls it in the processes of `stallwatch test`, by name, on a thread of its own. `milliseconds` is the time
/// without progress; `answer`, of `size` bytes, receives the report's path or the reason, ended by a zero byte.
@_cdecl("stallwatch_dump_hang")
public func dumpHang(
    _ milliseconds: UInt64, _ directory: UnsafePointer<CChar>, _ answer: UnsafeMutablePointer<CChar>, _ size: Int
) -> Int32 {
    let now = monotonicNow()
    let since = now &- min(milliseconds &* 1_000_000, now)
    do throws(StallWatchError) {
        let directory = pathText(cString: directory)
        let report = try WorkerThread.asOwnThread { () throws(StallWatchError) in
            try HangDump.take("tests", since: since, directory: directory)
        }
        let path = report.map { "\(directory)/\($0.fileName)" }
        store(path ?? "the threads could not be captured in time", in: answer, size: size)
        return path == nil ? 1 : 0
    } catch {
        store(error.description, in: answer, size: size)
        return 1
    }
}

/// Stores a text in a C buffer, cut to its size in bytes and ended by a zero byte.
func store(_ text: String, in buffer: UnsafeMutablePointer<CChar>, size: Int) {
    // It may name a path, which need not be UTF-8.
    let bytes = pathBytes(text).dropLast().prefix(max(size - 1, 0))
    for (index, byte) in bytes.enumerated() { buffer[index] = byte }
    if size > 0 { buffer[bytes.count] = 0 }
}
