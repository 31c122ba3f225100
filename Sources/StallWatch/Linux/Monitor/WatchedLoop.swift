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
    /// The loop's name in reports.
    ///
    /// Each loop of a monitor has a label of its own.
    public let label: String
    /// The duration from which a turn is a stall; `nil` for the monitor's threshold.
    public let threshold: StallThreshold?
    /// The identity of the loop's object, if it has one, so that no loop is watched twice under two labels.
    let identity: ObjectIdentifier?
    private let make: @Sendable (LoopMonitorFactory) throws(StallWatchError) -> [LoopMonitor]

    /// Creates the monitors of one loop.
    struct LoopMonitorFactory {
        let label: String
        let threshold: UInt64
        /// The shortest value of an adaptive threshold; equal to ``threshold`` for a fixed one.
        let floor: UInt64
        let alarm: WatchdogAlarm
        /// Whether the loop is known to run items already.
        var isServed = false

        /// Creates a monitor with a recorder of its own.
        func monitor(
            watchGaps: Bool = false, _ source: (TurnRecorder) throws(StallWatchError) -> any LoopSource
        ) throws(StallWatchError) -> LoopMonitor {
            let recorder = TurnRecorder(alarm: alarm, watchGaps: watchGaps)
            let source = try source(recorder)
            if isServed { (source as? HeartbeatSource)?.markServed() }
            return LoopMonitor(
                label: label, threshold: threshold, floor: floor, recorder: recorder, source: source
            )
        }
    }

    init(
        label: String, threshold: StallThreshold?, identity: ObjectIdentifier?,
        make: @escaping @Sendable (LoopMonitorFactory) throws(StallWatchError) -> [LoopMonitor]
    ) {
        self.label = label
        self.threshold = threshold
        self.identity = identity
        self.make = make
    }

    /// Starts following the loop; ``main`` has two monitors, for the main run loop and the main queue, and others one.
    func makeMonitors(
        threshold: UInt64, floor: UInt64? = nil, alarm: WatchdogAlarm, isServed: Bool = false
    ) throws(StallWatchError) -> [LoopMonitor] {
        try make(
            LoopMonitorFactory(
                label: label, threshold: threshold, floor: floor ?? threshold, alarm: alarm, isServed: isServed
            )
        )
    }
}

// MARK: - Run loops

extension WatchedLoop {
    /// The loop that runs the main queue and the main actor in this program.
    ///
    /// That is the main run loop. In a program that never runs it (`dispatchMain()`, an async `@main`), it is the
    /// thread that currently holds the main dispatch queue.
    public static let main = WatchedLoop(
        label: "main", threshold: nil, identity: ObjectIdentifier(RunLoop.main)
    ) { factory throws(StallWatchError) in
        let runLoop = try factory.monitor { recorder throws(StallWatchError) in
            try RunLoopSource(
                runLoop: RunLoop.main.coreFoundationRunLoop(), modes: [RunLoop.Mode.common.rawValue], recorder: recorder
            )
        }
        let isRunLoopUsed: @Sendable () -> Bool = { runLoop.recorder.snapshot().number > 0 }
        return [runLoop, try factory.monitor { .mainQueue($0, unless: isRunLoopUsed) }]
    }

    /// The main dispatch queue, whichever thread serves it.
    package static let mainQueue = WatchedLoop(label: "main", threshold: nil, identity: nil) {
        factory throws(StallWatchError) in
        [try factory.monitor { .mainQueue($0, unless: { false }) }]
    }

    /// The main thread's run loop, `RunLoop.main`, in its common modes.
    ///
    /// Watching begins when the loop is next entered or next leaves its wait. The time between two runs (`while !done {
    /// RunLoop.main.run(mode:before:) }`) is not watched.
    public static let mainRunLoop = WatchedLoop.runLoop(.main, label: "main")

    /// Returns a run loop to watch, whether or not its thread runs it yet.
    ///
    /// The monitored thread pays for two observers per turn, and for one more when it enters the loop.
    ///
    /// - Parameters:
    ///   - runLoop: The loop. The monitor keeps it alive while it watches it.
    ///   - label: The loop's name in reports.
    ///   - modes: The modes to watch: the loop's common modes, and any others by name. A run in an unwatched mode
    ///     belongs to the turn that entered it, but its waits do not count. A stall in such a run is reported once it
    ///     has lasted for two thresholds without a wait.
    ///   - watchGaps: Whether the time between two runs of the loop also counts as a turn.
    ///   - threshold: The duration from which a turn is a stall; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func runLoop(
        _ runLoop: RunLoop, label: String, modes: [RunLoop.Mode] = [.common], watchGaps: Bool = false,
        threshold: StallThreshold? = nil
    ) -> WatchedLoop {
        let names = modes.map(\.rawValue)
        // Safe: only the run loop's identity and its CFRunLoop are used. A CFRunLoop may be observed from any thread
        // (CFRunLoop.h).
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
    /// Returns a serial dispatch queue to watch by heartbeats.
    ///
    /// The watchdog sends the queue an item twice per threshold. The queue stalls if the item has not run within the
    /// threshold. A report's duration counts from the time that the item was sent. The stall may be older by up to
    /// ``StallReport/startUncertaintyMilliseconds``.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - label: The queue's name in reports.
    ///   - threshold: The longest time until an item runs; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func queue(_ queue: DispatchQueue, label: String, threshold: StallThreshold? = nil) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold, identity: ObjectIdentifier(queue)) {
            factory throws(StallWatchError) in
            [try factory.monitor { _ in .queue(queue) }]
        }
    }

    /// Returns a global dispatch queue to watch by heartbeats, like ``queue(_:label:threshold:)``.
    ///
    /// It stalls if no thread of the pool starts new work within the threshold.
    ///
    /// - Parameters:
    ///   - quality: The quality of service of the global queue.
    ///   - label: The queue's name in reports.
    ///   - threshold: The longest time until new work starts; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func globalQueue(
        _ quality: DispatchQoS.QoSClass = .default, label: String, threshold: StallThreshold? = nil
    ) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold, identity: nil) { factory throws(StallWatchError) in
            [try factory.monitor { _ in .globalQueue(quality) }]
        }
    }

    /// Returns the thread pool of Swift's tasks, to watch by heartbeats, like ``queue(_:label:threshold:)``.
    ///
    /// It stalls if a new task does not start within the threshold.
    ///
    /// - Parameters:
    ///   - label: The pool's name in reports.
    ///   - threshold: The longest time until a new task starts; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func cooperativePool(label: String = "tasks", threshold: StallThreshold? = nil) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold, identity: nil) { factory throws(StallWatchError) in
            [try factory.monitor { _ in .cooperativePool() }]
        }
    }

    /// Returns a loop that reports its turns through a probe.
    ///
    /// One monitor at a time can watch a probe.
    ///
    /// - Parameters:
    ///   - probe: The probe. Its label is the loop's name in reports.
    ///   - threshold: The duration from which a turn is a stall; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func probe(_ probe: LoopProbe, threshold: StallThreshold? = nil) -> WatchedLoop {
        WatchedLoop(label: probe.label, threshold: threshold, identity: ObjectIdentifier(probe)) {
            factory throws(StallWatchError) in
            [try factory.monitor { recorder throws(StallWatchError) in try ProbeSource(probe, recorder) }]
        }
    }
}
