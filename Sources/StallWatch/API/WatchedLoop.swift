import StallReports
public import Dispatch
public import Foundation

/// A loop that a monitor can watch.
///
/// ```swift
/// try monitor.watch(.main)
/// try monitor.watch(.runLoop(worker.runLoop, label: "worker"))
/// try monitor.watch(.queue(storage, label: "storage", threshold: .milliseconds(100)))
/// ```
public struct WatchedLoop: Sendable {
    /// The name that reports give the loop.
    ///
    /// One monitor watches one loop of a name.
    public let label: String
    /// How long a turn may take; `nil` for the monitor's own threshold.
    public let threshold: Duration?
    /// Which object the loop is, if it is one, so that it is not watched twice under two names.
    let identity: ObjectIdentifier?
    private let make: @Sendable (LoopMonitorFactory) throws(StallWatchError) -> [LoopMonitor]

    /// What a loop's monitors are made of.
    struct LoopMonitorFactory {
        let label: String
        let threshold: UInt64
        let alarm: WatchdogAlarm

        /// A monitor with a recorder of its own.
        func monitor(
            watchGaps: Bool = false, _ source: (TurnRecorder) throws(StallWatchError) -> any LoopSource
        ) throws(StallWatchError) -> LoopMonitor {
            let recorder = TurnRecorder(alarm: alarm, watchGaps: watchGaps)
            return LoopMonitor(
                label: label, threshold: threshold, recorder: recorder, source: try source(recorder)
            )
        }
    }

    init(
        label: String, threshold: Duration?, identity: ObjectIdentifier?,
        make: @escaping @Sendable (LoopMonitorFactory) throws(StallWatchError) -> [LoopMonitor]
    ) {
        self.label = label
        self.threshold = threshold
        self.identity = identity
        self.make = make
    }

    /// Starts following the loop.
    ///
    /// Most have one monitor; `main` has one for each way in which it may be run.
    func makeMonitors(threshold: UInt64, alarm: WatchdogAlarm) throws(StallWatchError) -> [LoopMonitor] {
        try make(LoopMonitorFactory(label: label, threshold: threshold, alarm: alarm))
    }
}

// MARK: - Run loops

extension WatchedLoop {
    /// Whatever runs the main queue and the main actor in this program: the main run loop, or, in one that never runs it
    /// (`dispatchMain()`, an async `@main`), the thread that holds the main dispatch queue at the time.
    public static let main = WatchedLoop(
        label: "main", threshold: nil, identity: ObjectIdentifier(RunLoop.main)
    ) { factory throws(StallWatchError) in
        let runLoop = try factory.monitor { recorder throws(StallWatchError) in
            try RunLoopSource(
                runLoop: RunLoop.main.coreFoundationRunLoop(), modes: [RunLoop.Mode.common.rawValue], recorder: recorder
            )
        }
        let isRunLoopUsed: @Sendable () -> Bool = { runLoop.recorder.snapshot().number > 0 }
        return [runLoop, try factory.monitor { _ in .mainQueue(unless: isRunLoopUsed) }]
    }

    /// The main thread's run loop, `RunLoop.main`, in its common modes.
    ///
    /// It is watched from the next time that it is entered or leaves its wait. Between two runs (`while !done {
    /// RunLoop.main.run(mode:before:) }`) it is not.
    public static let mainRunLoop = WatchedLoop.runLoop(.main, label: "main")

    /// Any run loop, also of a thread that does not run it yet.
    ///
    /// The monitored thread pays for two observers per turn, and one more when it enters the loop.
    ///
    /// - Parameters:
    ///   - runLoop: The loop. The monitor keeps it alive while it watches.
    ///   - label: The name that reports give it.
    ///   - modes: The modes to watch: those that are common to the loop, and any others by name. While the loop runs in a
    ///     mode that is not watched, the turn that it was entered from goes on, but time that it waits does not count: a
    ///     stall in there is told once it has lasted for two thresholds without a wait.
    ///   - watchGaps: Whether the time between two runs of the loop counts as a turn, too.
    ///   - threshold: How long a turn may take; `nil` for the monitor's own threshold.
    public static func runLoop(
        _ runLoop: RunLoop, label: String, modes: [RunLoop.Mode] = [.common], watchGaps: Bool = false,
        threshold: Duration? = nil
    ) -> WatchedLoop {
        let names = modes.map(\.rawValue)
        // Only its identity and its CFRunLoop are used, and that one may be observed from any thread (CFRunLoop.h).
        nonisolated(unsafe) let runLoop = runLoop
        return WatchedLoop(label: label, threshold: threshold, identity: ObjectIdentifier(runLoop)) {
            factory throws(StallWatchError) in
            let monitor = try factory.monitor(watchGaps: watchGaps) { recorder throws(StallWatchError) in
                try RunLoopSource(runLoop: runLoop.coreFoundationRunLoop(), modes: names, recorder: recorder)
            }
            return [monitor]
        }
    }
}

// MARK: - Loops that are watched by heartbeat

extension WatchedLoop {
    /// A serial dispatch queue: a heartbeat is sent to it twice per threshold, and is late when it has not run within it.
    ///
    /// A report's duration counts from the heartbeat; ``StallReport/startUncertaintyMilliseconds`` says by how much the
    /// stall may be older.
    public static func queue(_ queue: DispatchQueue, label: String, threshold: Duration? = nil) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold, identity: ObjectIdentifier(queue)) {
            factory throws(StallWatchError) in
            [try factory.monitor { _ in .queue(queue) }]
        }
    }

    /// One of the system's global queues: late when no thread of the pool takes up new work in time.
    public static func globalQueue(
        _ quality: DispatchQoS.QoSClass = .default, label: String, threshold: Duration? = nil
    ) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold, identity: nil) { factory throws(StallWatchError) in
            [try factory.monitor { _ in .globalQueue(quality) }]
        }
    }

    /// The pool of threads that runs Swift's tasks: late when a new task does not start in time.
    public static func cooperativePool(label: String = "tasks", threshold: Duration? = nil) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold, identity: nil) { factory throws(StallWatchError) in
            [try factory.monitor { _ in .cooperativePool() }]
        }
    }

    /// A loop that tells of its turns by itself, to one monitor at a time.
    public static func probe(_ probe: LoopProbe, threshold: Duration? = nil) -> WatchedLoop {
        WatchedLoop(label: probe.label, threshold: threshold, identity: ObjectIdentifier(probe)) {
            factory throws(StallWatchError) in
            [try factory.monitor { recorder throws(StallWatchError) in try ProbeSource(probe, recorder) }]
        }
    }
}
