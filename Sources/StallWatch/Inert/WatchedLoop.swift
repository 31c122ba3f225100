public import Dispatch
public import Foundation

/// A loop that a monitor on Linux can watch.
public struct WatchedLoop: Sendable {
    /// The loop's name in reports.
    public let label: String
    /// The duration from which a turn is a stall; `nil` for the monitor's threshold.
    public let threshold: StallThreshold?

    /// The loop that runs the main queue and the main actor in this program.
    public static let main = WatchedLoop(label: "main", threshold: nil)

    /// The main thread's run loop.
    public static let mainRunLoop = WatchedLoop(label: "main", threshold: nil)

    /// Returns a run loop.
    ///
    /// - Parameters:
    ///   - runLoop: The loop.
    ///   - label: The loop's name in reports.
    ///   - modes: The modes to watch.
    ///   - watchGaps: Whether the time between two runs of the loop also counts as a turn.
    ///   - threshold: The duration from which a turn is a stall; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func runLoop(
        _ runLoop: RunLoop, label: String, modes: [RunLoop.Mode] = [.common], watchGaps: Bool = false,
        threshold: StallThreshold? = nil
    ) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold)
    }

    /// Returns a serial dispatch queue.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - label: The queue's name in reports.
    ///   - threshold: The longest time until an item runs; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func queue(_ queue: DispatchQueue, label: String, threshold: StallThreshold? = nil) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold)
    }

    /// Returns a global dispatch queue.
    ///
    /// - Parameters:
    ///   - quality: The quality of service of the global queue.
    ///   - label: The queue's name in reports.
    ///   - threshold: The longest time until new work starts; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func globalQueue(
        _ quality: DispatchQoS.QoSClass = .default, label: String, threshold: StallThreshold? = nil
    ) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold)
    }

    /// Returns the thread pool of Swift's tasks.
    ///
    /// - Parameters:
    ///   - label: The pool's name in reports.
    ///   - threshold: The longest time until a new task starts; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func cooperativePool(label: String = "tasks", threshold: StallThreshold? = nil) -> WatchedLoop {
        WatchedLoop(label: label, threshold: threshold)
    }

    /// Returns a loop that reports its turns through a probe.
    ///
    /// - Parameters:
    ///   - probe: The probe. Its label is the loop's name in reports.
    ///   - threshold: The duration from which a turn is a stall; `nil` for the monitor's threshold.
    /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
    public static func probe(_ probe: LoopProbe, threshold: StallThreshold? = nil) -> WatchedLoop {
        WatchedLoop(label: probe.label, threshold: threshold)
    }
}

#if NIO
    public import NIOCore

    extension WatchedLoop {
        /// Returns an event loop of SwiftNIO.
        ///
        /// - Parameters:
        ///   - loop: The event loop.
        ///   - label: The loop's name in reports.
        ///   - threshold: The longest time until a task runs; `nil` for the monitor's threshold.
        /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
        public static func eventLoop(_ loop: any EventLoop, label: String, threshold: StallThreshold? = nil)
            -> WatchedLoop
        {
            WatchedLoop(label: label, threshold: threshold)
        }

        /// Returns the current event loops of a group.
        ///
        /// - Parameters:
        ///   - group: The group.
        ///   - label: The name of all these loops in reports.
        ///   - threshold: The longest time until a task runs; `nil` for the monitor's threshold.
        /// - Returns: The loops, for ``StallMonitor/watch(_:)``.
        public static func eventLoops(
            of group: any EventLoopGroup, label: String, threshold: StallThreshold? = nil
        ) -> WatchedLoop {
            WatchedLoop(label: label, threshold: threshold)
        }
    }
#endif
