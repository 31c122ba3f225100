public import Dispatch
public import Foundation

#if NIO
    public import NIOCore
#endif

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
    let source: Source

    /// The loop itself.
    ///
    /// `@unchecked Sendable`: of a run loop, only its identity and its CFRunLoop are used, which may be observed from any
    /// thread (CFRunLoop.h).
    enum Source: @unchecked Sendable {
        case main, mainQueue, cooperativePool
        case runLoop(RunLoop, modes: [String], watchGaps: Bool)
        case queue(DispatchQueue)
        case globalQueue(DispatchQoS.QoSClass)
        case probe(LoopProbe)
        case executor(any Executor)
        #if NIO
            case eventLoop(any EventLoop)
            case eventLoops(any EventLoopGroup)
        #endif
    }
}

// MARK: - Run loops

extension WatchedLoop {
    /// The loop that runs the main queue and the main actor in this program.
    ///
    /// That is the main run loop. In a program that never runs it (`dispatchMain()`, an async `@main`), it is the
    /// thread that currently holds the main dispatch queue.
    /// If the program has an executor of its own for the main actor, that is watched by heartbeats, too. So is the main queue
    /// in a run of the loop inside another one, in the default mode: one that a block of the main queue makes, as with
    /// `Process.waitUntilExit()`, keeps all other blocks waiting.
    public static let main = WatchedLoop(label: "main", threshold: nil, source: .main)

    /// The main dispatch queue, whichever thread serves it.
    package static let mainQueue = WatchedLoop(label: "main", threshold: nil, source: .mainQueue)

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
    ///   - watchGaps: Whether the time between two runs of the loop also counts as a turn. The time after the last run does, too:
    ///     end the watch (``StallMonitor/unwatch(_:)``) when the loop will not run again.
    ///   - threshold: The duration from which a turn is a stall; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func runLoop(
        _ runLoop: RunLoop, label: String, modes: [RunLoop.Mode] = [.common], watchGaps: Bool = false,
        threshold: StallThreshold? = nil
    ) -> WatchedLoop {
        let source = Source.runLoop(runLoop, modes: modes.map(\.rawValue), watchGaps: watchGaps)
        return WatchedLoop(label: label, threshold: threshold, source: source)
    }
}

// MARK: - Loops that are watched by heartbeat

extension WatchedLoop {
    /// Returns a serial dispatch queue to watch by heartbeats.
    ///
    /// The watchdog looks at the queue twice per threshold, and sends it an item if it has work. The queue stalls if the
    /// item has not run within the threshold. A report's duration counts from the time that the item was sent. The stall
    /// may be older by up to ``StallReport/startUncertaintyMilliseconds``. While the queue is suspended, nothing is late.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - label: The queue's name in reports.
    ///   - threshold: The longest time until an item runs; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func queue(_ queue: DispatchQueue, label: String, threshold: StallThreshold? = nil) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold, source: .queue(queue))
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
        WatchedLoop(label: label, threshold: threshold, source: .globalQueue(quality))
    }

    /// Returns the thread pool of Swift's tasks, to watch by heartbeats, like ``queue(_:label:threshold:)``.
    ///
    /// It stalls if a new task of the priority `medium` or `high` does not start within the threshold: each priority has threads
    /// of its own, and a task that the main thread starts outside of other tasks is one of `high`.
    ///
    /// - Parameters:
    ///   - label: The pool's name in reports.
    ///   - threshold: The longest time until a new task starts; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func cooperativePool(label: String = "tasks", threshold: StallThreshold? = nil) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold, source: .cooperativePool)
    }

    /// Returns an executor of tasks or actors to watch by heartbeats.
    ///
    /// The watchdog sends the executor a small task twice per threshold. A serial executor stalls if the task has not run
    /// within the threshold; a task executor starves if none of its threads has taken it. Turns count once it has run
    /// the first one. A report has the stack of the thread that ran the last heartbeat, and none if a serial executor has
    /// changed its thread. An executor that runs jobs in `enqueue`, on the caller's thread, is not watched.
    ///
    /// Each heartbeat costs a task executor one job and a serial executor two. A thread of the monitor calls `enqueue`.
    ///
    /// - Parameters:
    ///   - executor: A `SerialExecutor` or a `TaskExecutor`. The monitor keeps it alive while it watches it.
    ///   - label: The executor's name in reports.
    ///   - threshold: The longest time until a task runs; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``, which throws for an executor of neither kind.
    public static func executor(
        _ executor: any Executor, label: String, threshold: StallThreshold? = nil
    ) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold, source: .executor(executor))
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
        WatchedLoop(label: probe.label, threshold: threshold, source: .probe(probe))
    }
}

#if NIO
    extension WatchedLoop {
        /// Returns an event loop of SwiftNIO to watch by heartbeats.
        ///
        /// The watchdog looks at the loop twice per threshold, and sends it a task if it has work. The loop stalls if the
        /// task has not run within the threshold. A report's duration counts from the time that the task was sent. The
        /// stall may be older by up to ``StallReport/startUncertaintyMilliseconds``. Watching ends when the loop shuts
        /// down. Each heartbeat costs the loop one empty task.
        ///
        /// - Parameters:
        ///   - loop: The event loop.
        ///   - label: The loop's name in reports.
        ///   - threshold: The longest time until a task runs; `nil` for the monitor's threshold.
        /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
        public static func eventLoop(_ loop: any EventLoop, label: String, threshold: StallThreshold? = nil)
            -> WatchedLoop
        {
            WatchedLoop(label: label, threshold: threshold, source: .eventLoop(loop))
        }

        /// Returns the current event loops of a group, each watched by heartbeats like
        /// ``eventLoop(_:label:threshold:)``.
        ///
        /// A report names the thread of the loop that stalled.
        ///
        /// - Parameters:
        ///   - group: The group. Event loops that it adds later are not watched.
        ///   - label: The name of all these loops in reports.
        ///   - threshold: The longest time until a task runs; `nil` for the monitor's threshold.
        /// - Returns: The loops, for ``StallMonitor/watch(_:)``.
        public static func eventLoops(
            of group: any EventLoopGroup, label: String, threshold: StallThreshold? = nil
        ) -> WatchedLoop {
            WatchedLoop(label: label, threshold: threshold, source: .eventLoops(group))
        }
    }
#endif

// MARK: - Probes in C

extension LoopProbe {
    /// The pointer that the functions of `CStallWatch.h` take.
    ///
    /// It is valid for as long as the probe exists.
    public var handle: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
}

/// Implements `stallwatch_begin_turn` of `CStallWatch.h`.
@_cdecl("stallwatch_begin_turn")
public func stallwatchBeginTurn(_ handle: UnsafeMutableRawPointer?) {
    guard let handle else { return }
    Unmanaged<LoopProbe>.fromOpaque(handle)._withUnsafeGuaranteedRef { $0.beginTurn() }
}

/// Implements `stallwatch_end_turn` of `CStallWatch.h`.
@_cdecl("stallwatch_end_turn")
public func stallwatchEndTurn(_ handle: UnsafeMutableRawPointer?) {
    guard let handle else { return }
    Unmanaged<LoopProbe>.fromOpaque(handle)._withUnsafeGuaranteedRef { $0.endTurn() }
}
