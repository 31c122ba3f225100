import StallReports
import StallWatch
import Synchronization

/// Starts the monitor of a program that `stallwatch run` has started.
///
/// CPreload calls it by name, once, on a thread of its own.
///
/// - Parameters:
///   - threshold: The duration from which a turn is a stall, in nanoseconds.
///   - loops: The loops to watch: see ``RunMonitor/Loops``.
///   - output: The path of the directory for reports.
///   - reason: Receives the reason after a failure, ended by a zero byte.
///   - size: The size of `reason` in bytes.
/// - Returns: 0, or 1 after a failure.
@_cdecl("stallwatch_run_start")
public func startRun(
    _ threshold: UInt64, _ loops: Int32, _ output: UnsafePointer<CChar>, _ reason: UnsafeMutablePointer<CChar>,
    _ size: Int
) -> Int32 {
    do throws(StallWatchError) {
        let monitor = try RunMonitor(
            threshold: .nanoseconds(Int64(clamping: threshold)), loops: RunMonitor.Loops(rawValue: loops),
            output: String(cString: output))
        RunMonitor.current.withLock { $0 = monitor }
        return 0
    } catch {
        store("the monitor could not start: \(error.description)", in: reason, size: size)
        return 1
    }
}

/// Watches GLib's default main context.
///
/// - Parameters:
///   - functions: The first and the following address of each function of which one has a frame on the stack while the
///     context runs, one pair after another; both are equal for an unknown function.
///   - count: The number of pairs.
///   - isFollowed: Returns a value other than 0 as long as the context reports its turns. The monitor's watchdog calls it.
///   - reason: Receives the reason after a failure, ended by a zero byte.
///   - size: The size of `reason` in bytes.
/// - Returns: The handle for `stallwatch_begin_turn` and `stallwatch_end_turn`; `nil` after a failure.
@_cdecl("stallwatch_run_watch_glib")
public func watchGLib(
    _ functions: UnsafePointer<UInt64>, _ count: Int, _ isFollowed: @escaping @convention(c) @Sendable () -> Int32,
    _ reason: UnsafeMutablePointer<CChar>, _ size: Int
) -> UnsafeMutableRawPointer? {
    let ranges = (0..<count).map { min(functions[2 * $0], functions[2 * $0 + 1])..<functions[2 * $0 + 1] }
    // Without one of them, a stack cannot show that the loop does not run.
    let known = ranges.contains { $0.isEmpty } ? [] : ranges
    do throws(StallWatchError) {
        return try RunMonitor.current.withLock { monitor throws(StallWatchError) in
            try monitor?.watchGLib(functions: known) { isFollowed() != 0 }
        }
    } catch {
        store("the GLib loop could not be watched: \(error.description)", in: reason, size: size)
        return nil
    }
}

/// Stops the monitor, and says how many stalls it has found.
///
/// - Parameters:
///   - text: Receives the sentence, ended by a zero byte.
///   - size: The size of `text` in bytes.
/// - Returns: 1, or 0 if there was no stall and there is no sentence.
@_cdecl("stallwatch_run_finish")
public func finishRun(_ text: UnsafeMutablePointer<CChar>, _ size: Int) -> Int {
    guard let sentence = RunMonitor.current.withLock({ $0 })?.finish() else { return 0 }
    store(sentence, in: text, size: size)
    return 1
}
