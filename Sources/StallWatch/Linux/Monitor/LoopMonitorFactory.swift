import Foundation
import StallReports

#if NIO
    import NIOCore
#endif

struct LoopMonitorFactory {
    let label: String
    let threshold: UInt64
    /// The shortest value of an adaptive threshold; equal to ``threshold`` for a fixed one.
    let floor: UInt64
    let alarm: WatchdogAlarm
    /// Whether the loop is known to run items already.
    let isServed: Bool

    /// Creates a monitor with a recorder of its own.
    func monitor(
        watchGaps: Bool = false, _ source: (TurnRecorder) throws(StallWatchError) -> any LoopSource
    ) throws(StallWatchError) -> LoopMonitor {
        let recorder = TurnRecorder(alarm: alarm, watchGaps: watchGaps)
        let source = try source(recorder)
        if isServed { (source as? HeartbeatSource)?.markServed() }
        return LoopMonitor(label: label, threshold: threshold, floor: floor, recorder: recorder, source: source)
    }

    func monitor(of runLoop: RunLoop, modes: [String], watchGaps: Bool = false) throws(StallWatchError) -> LoopMonitor {
        try monitor(watchGaps: watchGaps) { recorder throws(StallWatchError) in
            try RunLoopSource(runLoop: runLoop.coreFoundationRunLoop(), modes: modes, recorder: recorder)
        }
    }
}

extension WatchedLoop {
    /// The identity of the loop's object, if it has one, so that no loop is watched twice under two labels.
    var identity: ObjectIdentifier? {
        switch source {
        case .main: ObjectIdentifier(RunLoop.main)
        case .runLoop(let runLoop, _, _): ObjectIdentifier(runLoop)
        case .queue(let queue): ObjectIdentifier(queue)
        case .probe(let probe): ObjectIdentifier(probe)
        case .mainQueue, .globalQueue, .cooperativePool: nil
        #if NIO
            case .eventLoop(let loop): ObjectIdentifier(loop)
            case .eventLoops(let group): ObjectIdentifier(group)
        #endif
        }
    }

    /// Starts following the loop; ``main`` has two monitors, for the main run loop and the main queue, and others one.
    func makeMonitors(
        threshold: UInt64, floor: UInt64? = nil, alarm: WatchdogAlarm, isServed: Bool = false
    ) throws(StallWatchError) -> [LoopMonitor] {
        let factory = LoopMonitorFactory(
            label: label, threshold: threshold, floor: floor ?? threshold, alarm: alarm, isServed: isServed
        )
        switch source {
        case .main:
            let runLoop = try factory.monitor(of: .main, modes: [RunLoop.Mode.common.rawValue])
            let isRunLoopUsed: @Sendable () -> Bool = { runLoop.recorder.snapshot().number > 0 }
            return [runLoop, try factory.monitor { .mainQueue($0, unless: isRunLoopUsed) }]
        case .mainQueue: return [try factory.monitor { .mainQueue($0, unless: { false }) }]
        case .runLoop(let runLoop, let modes, let watchGaps):
            return [try factory.monitor(of: runLoop, modes: modes, watchGaps: watchGaps)]
        case .queue(let queue): return [try factory.monitor { _ in .queue(queue) }]
        case .globalQueue(let quality): return [try factory.monitor { _ in .globalQueue(quality) }]
        case .cooperativePool: return [try factory.monitor { _ in .cooperativePool() }]
        case .probe(let probe):
            return [try factory.monitor { recorder throws(StallWatchError) in try ProbeSource(probe, recorder) }]
        #if NIO
            case .eventLoop(let loop): return [try factory.monitor { _ in .eventLoop(loop) }]
            case .eventLoops(let group):
                var monitors: [LoopMonitor] = []
                for loop in group.makeIterator() { monitors.append(try factory.monitor { _ in .eventLoop(loop) }) }
                return monitors
        #endif
        }
    }
}
