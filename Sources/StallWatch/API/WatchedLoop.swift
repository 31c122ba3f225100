public import Dispatch
public import Foundation
import StallReports

#if NIO
    public import NIOCore
    public import NIOPosix
#endif

/// A loop that a monitor can watch.
///
/// ```swift
/// try monitor.watch(.main)
/// try monitor.watch(.runLoop(worker.runLoop, label: "worker"))
/// try monitor.watch(.queue(storage, label: "storage"), threshold: .milliseconds(100))
/// ```
public struct WatchedLoop: Sendable {
    /// The loop's name in reports.
    ///
    /// Each loop of a monitor has a label of its own. Of one that is longer than 1,024 bytes of UTF-8, the end is a hash.
    public let label: String
    let source: Source

    init(label: String, source: Source) { (self.label, self.source) = (StallReport.bounded(label), source) }

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
            case threadPool(NIOThreadPool)
        #endif
    }
}

// MARK: - Run loops

extension WatchedLoop {
    /// The loop that runs the main queue and the main actor in this program.
    ///
    /// That is the main run loop, in its common modes. In a program that does not run it (`dispatchMain()`, an async
    /// `@main`), it is the thread that currently holds the main dispatch queue. If the program has an executor of its own for
    /// the main actor, the monitor also sends that executor heartbeats. Blocks of the main queue also wait while one of them
    /// runs the loop itself, as `Process.waitUntilExit()` does; so the monitor sends the main queue heartbeats then.
    ///
    /// Watching begins when the loop is next entered or next leaves its wait. The time between two runs (`while !done {
    /// RunLoop.main.run(mode:before:) }`) is not watched.
    public static let main = WatchedLoop(label: "main", source: .main)

    /// The main dispatch queue, whichever thread serves it.
    package static let mainQueue = WatchedLoop(label: "main", source: .mainQueue)

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
    ///   - watchGaps: Whether the time between two runs of the loop also counts as a turn. So does the time after the last
    ///     run: call ``LoopWatch/stop()`` when the loop will not run again.
    /// - Returns: The loop, for ``StallMonitor/watch(_:threshold:)``.
    public static func runLoop(
        _ runLoop: RunLoop, label: String, modes: [RunLoop.Mode] = [.common], watchGaps: Bool = false
    ) -> WatchedLoop {
        let source = Source.runLoop(runLoop, modes: modes.map(\.rawValue), watchGaps: watchGaps)
        return WatchedLoop(label: label, source: source)
    }
}

// MARK: - Loops that are watched by heartbeat

extension WatchedLoop {
    /// Returns a serial dispatch queue to watch by heartbeats.
    ///
    /// The watchdog looks at the queue twice per threshold, and sends it an item if it has work. The queue stalls if the
    /// item has not run within the threshold. A report's duration counts from the time that the item was sent. The stall
    /// may be older by up to `startUncertaintyMilliseconds`. While the queue is suspended, nothing is late.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - label: The queue's name in reports.
    /// - Returns: The loop, for ``StallMonitor/watch(_:threshold:)``.
    public static func queue(_ queue: DispatchQueue, label: String) -> WatchedLoop {
        WatchedLoop(label: label, source: .queue(queue))
    }

    /// Returns a global dispatch queue to watch by heartbeats, like ``queue(_:label:)``.
    ///
    /// It stalls if no thread of the pool starts new work within the threshold.
    ///
    /// - Parameters:
    ///   - quality: The quality of service of the global queue.
    ///   - label: The queue's name in reports.
    /// - Returns: The loop, for ``StallMonitor/watch(_:threshold:)``.
    public static func globalQueue(
        _ quality: DispatchQoS.QoSClass = .default, label: String
    ) -> WatchedLoop {
        WatchedLoop(label: label, source: .globalQueue(quality))
    }

    /// Returns the thread pool of Swift's tasks, to watch by heartbeats, like ``queue(_:label:)``.
    ///
    /// It stalls if a new task of the priority `medium` or `high` does not start within the threshold. Each priority has threads
    /// of its own. A `Task { }` that the main thread creates outside of other tasks has the priority `high`. While its threads
    /// compute and no task of the app waits for one, the delay is only counted (``SuppressionReason/noTaskWaited``).
    ///
    /// - Parameter label: The pool's name in reports.
    /// - Returns: The loop, for ``StallMonitor/watch(_:threshold:)``.
    public static func cooperativePool(label: String = "tasks") -> WatchedLoop {
        WatchedLoop(label: label, source: .cooperativePool)
    }

    /// Returns an executor of tasks or actors to watch by heartbeats.
    ///
    /// The watchdog sends the executor a small task twice per threshold. A serial executor stalls if the task has not run
    /// within the threshold; a task executor starves if none of its threads has taken it. Turns count once it has run
    /// the first one. A report has the stack of a thread that runs a job of the executor, and none if no thread is seen to
    /// run one. An executor that runs jobs in `enqueue`, on the caller's thread, is not watched.
    ///
    /// Each heartbeat costs a task executor one job and a serial executor two. A thread of the monitor calls `enqueue`.
    ///
    /// - Parameters:
    ///   - executor: A `SerialExecutor` or a `TaskExecutor`. The monitor keeps it alive while it watches it.
    ///   - label: The executor's name in reports.
    /// - Returns: The loop, for ``StallMonitor/watch(_:threshold:)``, which throws for an executor of neither kind.
    public static func executor(
        _ executor: any Executor, label: String
    ) -> WatchedLoop {
        WatchedLoop(label: label, source: .executor(executor))
    }

    /// Returns a loop that reports its turns through a probe.
    ///
    /// One monitor at a time can watch a probe.
    ///
    /// - Parameter probe: The probe. Its label is the loop's name in reports.
    /// - Returns: The loop, for ``StallMonitor/watch(_:threshold:)``.
    public static func probe(_ probe: LoopProbe) -> WatchedLoop {
        WatchedLoop(label: probe.label, source: .probe(probe))
    }
}

#if NIO
    extension WatchedLoop {
        /// Returns an event loop of SwiftNIO to watch by heartbeats.
        ///
        /// The watchdog looks at the loop twice per threshold, and sends it a task if it has work. The loop stalls if the
        /// task has not run within the threshold. A report's duration counts from the time that the task was sent. The
        /// stall may be older by up to `startUncertaintyMilliseconds`. Watching ends when the loop shuts
        /// down. Each heartbeat costs the loop one empty task. A thread of the monitor calls `execute` of a loop that
        /// is not SwiftNIO's own.
        ///
        /// - Parameters:
        ///   - loop: The event loop.
        ///   - label: The loop's name in reports.
        /// - Returns: The loop, for ``StallMonitor/watch(_:threshold:)``.
        public static func eventLoop(_ loop: any EventLoop, label: String)
            -> WatchedLoop
        {
            WatchedLoop(label: label, source: .eventLoop(loop))
        }

        /// Returns the current event loops of a group, each watched by heartbeats like
        /// ``eventLoop(_:label:)``.
        ///
        /// A report names the thread of the loop that stalled.
        ///
        /// - Parameters:
        ///   - group: The group. Event loops that it adds later are not watched.
        ///   - label: The name of all these loops in reports.
        /// - Returns: The loops, for ``StallMonitor/watch(_:threshold:)``.
        public static func eventLoops(
            of group: any EventLoopGroup, label: String
        ) -> WatchedLoop {
            WatchedLoop(label: label, source: .eventLoops(group))
        }

        /// Returns a thread pool of SwiftNIO to watch by heartbeats, such as that of `NIOFileSystem`, `NIOThreadPool.singleton`.
        ///
        /// The watchdog submits an item twice per threshold. The pool starves if none of its threads has taken the item
        /// within the threshold. A report has the number of threads, and the stacks of those that have run a heartbeat: a
        /// thread that was busy since the watch began is missing. What waits in the pool is private, and not read.
        ///
        /// Each heartbeat costs the pool one empty item, also while it is idle. Watching ends when the pool shuts down.
        ///
        /// - Parameters:
        ///   - pool: The pool, which has been started.
        ///   - label: The pool's name in reports.
        /// - Returns: The loop, for ``StallMonitor/watch(_:threshold:)``, which throws for a pool that does not run.
        public static func threadPool(_ pool: NIOThreadPool, label: String) -> WatchedLoop {
            WatchedLoop(label: label, source: .threadPool(pool))
        }
    }
#endif
