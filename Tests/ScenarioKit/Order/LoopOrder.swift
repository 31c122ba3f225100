import CoreFoundation
import Dispatch
import Foundation
import Glibc
import LinuxSupport
import Synchronization

/// Records what the main run loop does, in its order: the notices to its observers, and its callouts.
///
/// `@unchecked Sendable`: only the main thread uses it, apart from ``record(_:)``, which a lock protects, and functions of
/// CFRunLoop, which take the loop's own lock.
final class LoopOrder: @unchecked Sendable {
    struct Step: Sendable {
        var name: String
        var isCallout = false
        /// In monotonic nanoseconds.
        var time: UInt64
    }

    /// The mode of the main loop's runs here, which has no work but that of a case.
    let mode: CFRunLoopMode
    let loop: CFRunLoop = CFRunLoopGetMain()
    private let recorded = Mutex<[Step]>([])
    /// The number of callouts that are still to come.
    private var left: Int
    /// Called once in the first notice of the wait.
    private var beforeWait: (@Sendable () -> Void)?
    private var sources: [LoopSource] = []

    init(_ callouts: Int, mode: CFRunLoopMode = kCFRunLoopDefaultMode) {
        left = callouts
        self.mode = mode
    }

    var steps: [Step] { recorded.withLock { $0 } }

    func record(_ name: String) { append(Step(name: name, time: monotonicNow())) }

    private func append(_ step: Step) { recorded.withLock { $0.append(step) } }

    // MARK: - Work of the loop

    /// Records a callout, and does what the case does in it.
    func callOut(_ name: String, _ work: () -> Void = {}) {
        append(Step(name: name, isCallout: true, time: monotonicNow()))
        left -= 1
        work()
    }

    func addTimer(_ work: @escaping () -> Void = {}) {
        let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { [self] _ in
            callOut("timer", work)
        }
        CFRunLoopAddTimer(loop, timer, mode)
    }

    /// Adds a source of version 0, which is not signaled yet, and signals itself until it was called so often.
    ///
    /// Signal it without waking the loop: a wake-up that no wait takes would be one of the next case.
    func addSource0(times: Int = 1) -> Source0 {
        let source = Source0(on: loop, mode: mode) { [self] source in
            callOut("source0")
            let calls = steps.count { $0.name == "source0" }
            if calls < times { (source as? Source0)?.signalWithoutWaking() }
        }
        sources.append(source)
        return source
    }

    /// Adds a source of version 1, whose descriptor is ready.
    func addSource1() {
        let source = Source1(on: loop, mode: mode) { [self] _ in callOut("source1") }
        sources.append(source)
        source.signal()
    }

    /// Adds a block, and does not wake the loop.
    func perform() {
        CFRunLoopPerformBlock(loop, mode) { [self] in callOut("block") }
    }

    func addMainQueueBlock(_ work: @escaping @Sendable () -> Void = {}) {
        DispatchQueue.main.async { [self] in callOut("main queue", work) }
    }

    /// Does `work` on another thread once the loop waits, and wakes the loop 20 ms later.
    func duringWait(_ what: String, _ work: @escaping @Sendable () -> Void) {
        beforeWait = { [self] in
            Thread.detachNewThread { [self] in
                while !CFRunLoopIsWaiting(loop) { usleep(100) }
                record("*\(what)*")
                work()
                usleep(20_000)
                record("*20 ms later: CFRunLoopWakeUp*")
                CFRunLoopWakeUp(loop)
            }
        }
    }

    // MARK: - Runs of the loop

    /// Runs the loop until it has done all callouts and goes to wait again: an event ends the run, and no time.
    func run(returnAfterSource: Bool = false) {
        let observer = addObserver()
        defer { CFRunLoopObserverInvalidate(observer) }
        // The limit ends a run that never does what it should.
        run(for: 60, returnAfterSource)
    }

    /// Runs the loop for this time.
    func run(for seconds: Double) {
        let observer = addObserver()
        defer { CFRunLoopObserverInvalidate(observer) }
        run(for: seconds, false)
    }

    /// Runs the loop in one of its callouts.
    func runInCallout() { run(for: 60, true) }

    private func run(for seconds: Double, _ returnAfterSource: Bool) {
        let result = CFRunLoopRunInMode(mode, seconds, returnAfterSource)
        let name =
            switch result {
            case .finished: "finished"
            case .stopped: "stopped"
            case .timedOut: "timed out"
            case .handledSource: "handled a source"
            @unknown default: "result \(result.rawValue)"
            }
        // The steps of a case end where the loop goes to wait again: there it is stopped.
        if steps.last?.name != "BeforeWaiting" { record("*\(name)*") }
    }

    func removeSources() {
        for source in sources { source.invalidate() }
        sources = []
    }

    private func addObserver() -> CFRunLoopObserver? {
        var isDone = false
        let observer = CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.allActivities.rawValue, true, 0) {
            [self] _, activity in
            guard !isDone else { return }
            record(Self.name(of: activity))
            guard activity == .beforeWaiting else { return }
            if let work = beforeWait {
                beforeWait = nil
                work()
            } else if left <= 0 {
                isDone = true
                CFRunLoopStop(loop)
            }
        }
        CFRunLoopAddObserver(loop, observer, mode)
        return observer
    }

    private static func name(of activity: CFRunLoopActivity) -> String {
        switch activity {
        case .entry: "Entry"
        case .beforeTimers: "BeforeTimers"
        case .beforeSources: "BeforeSources"
        case .beforeWaiting: "BeforeWaiting"
        case .afterWaiting: "AfterWaiting"
        case .exit: "Exit"
        default: "activity \(activity.rawValue)"
        }
    }
}
