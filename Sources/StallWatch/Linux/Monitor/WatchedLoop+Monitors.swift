import Foundation
import StallReports

#if NIO
    import NIOCore
#endif

extension WatchedLoop {
    /// The identity of the loop's object, if it has one, so that no loop is watched twice under two labels.
    var identity: ObjectIdentifier? {
        switch source {
        case .main: ObjectIdentifier(RunLoop.main)
        case .runLoop(let runLoop, _, _): ObjectIdentifier(runLoop)
        case .queue(let queue): ObjectIdentifier(queue)
        case .probe(let probe): ObjectIdentifier(probe)
        case .executor(let executor): ObjectIdentifier(executor)
        case .mainQueue, .globalQueue, .cooperativePool: nil
        #if NIO
            case .eventLoop(let loop): ObjectIdentifier(loop)
            case .eventLoops(let group): ObjectIdentifier(group)
            case .threadPool(let pool): ObjectIdentifier(pool)
        #endif
        }
    }

    /// The descriptors that the main run loop and the main queue take when first used, and some that stay free; before the
    /// monitor's start, also for those that it keeps.
    static func descriptors(isRunning: Bool) -> Int { isRunning ? 12 : 16 }

    /// Whether the loop may open descriptors when first used, without which CoreFoundation and libdispatch end the process.
    var mayTakeDescriptors: Bool {
        switch source {
        case .main, .mainQueue, .runLoop: true
        default: false
        }
    }

    /// Follows the loop, a recorder per monitor; `.main` has the run loop, the queue and the program's main executor.
    func makeMonitors(
        threshold: UInt64, alarm: WatchdogAlarm, isServed: Bool = false
    ) throws(StallWatchError) -> [LoopMonitor] {
        func monitor(
            watchGaps: Bool = false, _ source: (TurnRecorder) throws(StallWatchError) -> any LoopSource
        ) throws(StallWatchError) -> LoopMonitor {
            let recorder = TurnRecorder(alarm: alarm, watchGaps: watchGaps)
            let source = try source(recorder)
            if isServed { (source as? HeartbeatSource)?.markServed() }
            return LoopMonitor(label: label, threshold: threshold, recorder: recorder, source: source)
        }
        func executorMonitor(_ executor: any Executor) throws(StallWatchError) -> LoopMonitor {
            guard let source: HeartbeatSource = .executor(executor, tasks: { PoolTasks.readerOfThisProcess }) else {
                throw StallWatchError(
                    .invalidConfiguration,
                    "the executor of \(label) is neither a SerialExecutor nor a TaskExecutor: make it one of them")
            }
            return try monitor { _ in source }
        }
        func runLoopMonitor(
            _ runLoop: RunLoop, modes: [String], watchGaps: Bool = false
        ) throws(StallWatchError) -> LoopMonitor {
            try monitor(watchGaps: watchGaps) { recorder throws(StallWatchError) in
                try RunLoopSource(runLoop: runLoop.coreFoundationRunLoop(), modes: modes, recorder: recorder)
            }
        }
        switch source {
        case .main:
            let runLoop = try runLoopMonitor(.main, modes: [RunLoop.Mode.common.rawValue])
            var monitors = [runLoop, try monitor { .mainQueue($0, besides: runLoop) }]
            if let custom = MainActorExecutor.custom { monitors.append(try executorMonitor(custom)) }
            return monitors
        case .mainQueue: return [try monitor { .mainQueue($0) }]
        case .runLoop(let runLoop, let modes, let watchGaps):
            return [try runLoopMonitor(runLoop, modes: modes, watchGaps: watchGaps)]
        case .queue(let queue): return [try monitor { _ in .queue(queue) }]
        case .globalQueue(let quality): return [try monitor { _ in .globalQueue(quality) }]
        case .cooperativePool: return [try monitor { _ in .cooperativePool() }]
        case .executor(let executor): return [try executorMonitor(executor)]
        case .probe(let probe):
            return [try monitor { recorder throws(StallWatchError) in try ProbeSource(probe, recorder) }]
        #if NIO
            case .eventLoop(let loop): return [try monitor { _ in .eventLoop(loop) }]
            case .eventLoops(let group):
                var monitors: [LoopMonitor] = []
                for loop in group.makeIterator() { monitors.append(try monitor { _ in .eventLoop(loop) }) }
                return monitors
            case .threadPool(let pool):
                guard let source: HeartbeatSource = .threadPool(pool) else {
                    throw StallWatchError(
                        .invalidConfiguration, "the thread pool of \(label) does not run: call its start() first")
                }
                return [try monitor { _ in source }]
        #endif
        }
    }
}
