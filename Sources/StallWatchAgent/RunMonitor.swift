import StallReports
import StallWatch
import Synchronization

/// The monitor of a program that `stallwatch run` has started.
struct RunMonitor {
    /// The loops that the preloaded library asks for: the values of `enum cpreload_loop`.
    struct Loops: OptionSet {
        let rawValue: Int32
        static let runLoop = Loops(rawValue: 1)
        static let mainQueue = Loops(rawValue: 2)
    }

    /// The monitor of this process, once it has been started.
    static let current = Mutex<RunMonitor?>(nil)

    private let monitor: StallMonitor
    private let output: String
    /// Keeps the probe of GLib's main context, whose poll function has its address.
    private var probe: LoopProbe?

    /// Starts a monitor.
    ///
    /// - Parameters:
    ///   - threshold: The duration from which a turn is a stall.
    ///   - loops: The loops of Foundation and Dispatch to watch.
    ///   - output: The directory for reports.
    /// - Throws: ``StallWatchError`` if the reports cannot be written, or the system refuses memory or a thread.
    init(threshold: Duration, loops: Loops, output: String) throws(StallWatchError) {
        monitor = try StallMonitor(.init(threshold: .fixed(threshold), reports: .directory(output)))
        self.output = output
        if loops == [.runLoop, .mainQueue] {
            try monitor.watch(.main)
        } else if loops.contains(.runLoop) {
            try monitor.watch(.mainRunLoop)
        } else if loops.contains(.mainQueue) {
            try monitor.watch(.mainQueue)
        }
        try monitor.start()
    }

    /// Watches GLib's default main context.
    ///
    /// - Parameters:
    ///   - functions: The functions of which one has a frame on the stack while the context runs; empty if they are
    ///     unknown.
    ///   - isFollowed: Returns whether the context still reports its turns.
    /// - Returns: The handle for `stallwatch_begin_turn` and `stallwatch_end_turn`, which is valid until the process ends.
    /// - Throws: ``StallWatchError`` if the monitor watches it already.
    mutating func watchGLib(
        functions: [Range<UInt64>], isFollowed: @escaping @Sendable () -> Bool
    ) throws(StallWatchError) -> UnsafeMutableRawPointer {
        let probe = LoopProbe(label: "glib") { addresses in
            guard isFollowed() else { return false }
            guard let addresses, !functions.isEmpty else { return true }
            return addresses.contains { address in functions.contains { $0.contains(address) } }
        }
        try monitor.watch(.probe(probe))
        self.probe = probe
        return probe.handle
    }

    /// Stops the monitor and completes its reports.
    ///
    /// Blocks the calling thread for at most 5 seconds, and usually for some milliseconds.
    ///
    /// - Returns: A sentence about the stalls; `nil` if there were none.
    func finish() -> String? {
        monitor.stop()
        let statistics = monitor.statistics
        guard statistics.stalls > 0 else { return nil }
        let count = statistics.stalls == 1 ? "1 stall" : "\(statistics.stalls) stalls"
        let failure = statistics.lastWriteError.map { ", but not each is there: \($0.description)" } ?? ""
        return "\(count), see: stallwatch show \(output)\(failure)"
    }
}
