import CStalls
import CoreFoundation
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

/// A loop of the soak, which runs work that other threads give it.
struct SoakLoop: Sendable {
    let watched: WatchedLoop
    private let submit: @Sendable (@escaping @Sendable () -> Void) -> Void

    init(_ loop: SoakRunLoop, label: String) {
        watched = .runLoop(loop.runLoop, label: label)
        submit = { loop.perform($0) }
    }

    init(queue label: String) {
        let queue = DispatchQueue(label: label)
        watched = .queue(queue, label: label)
        submit = { queue.async(execute: $0) }
    }

    init(probe label: String) {
        let loop = SoakProbeLoop(label)
        watched = .probe(loop.probe)
        submit = { loop.perform($0) }
    }

    /// Runs `work` in a turn of the loop, and times it.
    func perform(_ ledger: SoakLedger, _ work: @escaping @Sendable (_ began: UInt64) -> Void) {
        let (label, submitted) = (watched.label, SoakLedger.time())
        submit { ledger.time(label, since: submitted, work) }
    }
}

/// A thread's run loop.
///
/// `@unchecked Sendable`: other threads only give it work and wake it, which the run loop protects with its lock.
final class SoakRunLoop: @unchecked Sendable {
    let runLoop = RunLoop.current
    private let reference = CFRunLoopGetCurrent()

    /// That of the calling thread.
    init() {}

    /// Starts a thread that runs its loop.
    static func start() -> SoakRunLoop {
        let started = Mutex<SoakRunLoop?>(nil)
        let isReady = DispatchSemaphore(value: 0)
        SmallThread.start {
            let loop = SoakRunLoop()
            // A run loop without sources returns at once.
            loop.runLoop.add(Timer(timeInterval: 3_600, repeats: true) { _ in }, forMode: .default)
            started.withLock { $0 = loop }
            isReady.signal()
            loop.runLoop.run()
        }
        isReady.wait()
        guard let loop = started.withLock({ $0 }) else { exit(70) }
        return loop
    }

    func perform(_ work: @escaping @Sendable () -> Void) {
        runLoop.perform(work)
        CFRunLoopWakeUp(reference)
    }
}

/// A loop that a probe reports, on a thread of its own.
private final class SoakProbeLoop: Sendable {
    let probe: LoopProbe
    private let work = Mutex<[@Sendable () -> Void]>([])
    private let hasWork = DispatchSemaphore(value: 0)

    init(_ label: String) {
        probe = LoopProbe(label: label)
        SmallThread.start { [self] in
            while true {
                hasWork.wait()
                let next = work.withLock { $0.removeFirst() }
                probe.beginTurn()
                next()
                probe.endTurn()
            }
        }
    }

    func perform(_ next: @escaping @Sendable () -> Void) {
        work.withLock { $0.append(next) }
        hasWork.signal()
    }
}

/// A thread with a stack of 64 KiB.
final class SmallThread: Sendable {
    static let stackBytes = 64 << 10
    private static let lowestPriority: Int32 = 1

    private let body: @Sendable () -> Void

    private init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    /// Starts a thread; a real-time one (SCHED_RR) runs before all others, so its body has to be short.
    static func start(isRealTime: Bool = false, _ body: @escaping @Sendable () -> Void) {
        let isStarted = stalls_start_thread(
            stackBytes, isRealTime ? lowestPriority : 0,
            { argument in
                guard let argument else { return }
                Unmanaged<SmallThread>.fromOpaque(argument).takeRetainedValue().body()
            }, Unmanaged.passRetained(SmallThread(body)).toOpaque())
        guard isStarted else {
            tell("FAILED: a \(isRealTime ? "real-time " : "")thread with a stack of 64 KiB is refused")
            exit(69)
        }
    }
}
