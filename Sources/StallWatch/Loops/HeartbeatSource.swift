internal import CLinux
import Dispatch
import Synchronization

/// Follows a loop that cannot be observed: one tiny item is sent to it, and what it takes until that has run is its turn.
///
/// Items are sent twice per threshold and never while one is pending, so a loop that is stuck is sent one and no more. It
/// counts only from the first item that has run: before that, nobody is known to serve the loop.
final class HeartbeatSource: LoopSource {
    let kind: StallReport.LoopKind
    private let interval: UInt64
    private let send: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let owner: @Sendable () -> Int32?
    private let isUnneeded: @Sendable () -> Bool

    private let isPending = Atomic<Bool>(false)
    private let lastSent = Atomic<UInt64>(0)
    private let lastRan = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - threshold: How long the loop may take, in nanoseconds.
    ///   - owner: The thread that runs the loop now, if that can be known.
    ///   - isUnneeded: Whether the loop is followed better in another way.
    ///   - send: Submits an item to the loop. Called on the watchdog; must not wait.
    init(
        kind: StallReport.LoopKind, threshold: UInt64,
        owner: @escaping @Sendable () -> Int32? = { nil },
        unless isUnneeded: @escaping @Sendable () -> Bool = { false },
        send: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.kind = kind
        interval = threshold / 2
        self.send = send
        self.owner = owner
        self.isUnneeded = isUnneeded
    }

    func beat(_ recorder: TurnRecorder, at now: UInt64) -> UInt64? {
        if isUnneeded() { return nil }
        // While one is pending its turn's age says when to look, and after that its end wakes the watchdog. Before the first
        // has run there is no turn, so look again.
        if isPending.load(ordering: .acquiring) {
            return lastRan.load(ordering: .relaxed) == 0 ? now &+ interval : nil
        }
        let due = lastSent.load(ordering: .relaxed) &+ interval
        guard now >= due else { return due }
        isPending.store(true, ordering: .relaxed)
        lastSent.store(now, ordering: .relaxed)
        if lastRan.load(ordering: .relaxed) != 0 { recorder.beginTurn(at: now) }
        send { [self] in
            recorder.noteThread()
            let ran = monotonicNow()
            recorder.endTurn(at: ran)
            lastRan.store(ran, ordering: .relaxed)
            isPending.store(false, ordering: .releasing)
        }
        return now &+ interval
    }

    func target(of recorder: TurnRecorder) -> CaptureTarget {
        switch kind {
        case .globalQueue, .cooperativePool: .pool
        default: (owner() ?? recorder.lastThread).map(CaptureTarget.thread) ?? .unknown
        }
    }

    func startUncertainty(of began: UInt64) -> UInt64? {
        let healthy = lastRan.load(ordering: .relaxed)
        return began > healthy ? began - healthy : 0
    }
}

extension LoopSource where Self == HeartbeatSource {
    /// A serial dispatch queue.
    static func queue(_ queue: DispatchQueue, threshold: UInt64) -> HeartbeatSource {
        let lock = QueueOwner(queue)
        return HeartbeatSource(kind: .dispatchQueue, threshold: threshold, owner: { lock.thread() }) { item in
            queue.async {
                lock.check()
                item()
            }
        }
    }

    /// The main dispatch queue, as long as nobody runs the main run loop.
    static func mainQueue(threshold: UInt64, unless isRunLoopUsed: @escaping @Sendable () -> Bool) -> HeartbeatSource {
        let lock = QueueOwner(.main)
        return HeartbeatSource(
            kind: .mainQueue, threshold: threshold, owner: { lock.thread() }, unless: isRunLoopUsed
        ) { item in
            DispatchQueue.main.async {
                lock.check()
                item()
            }
        }
    }

    /// A global queue of libdispatch.
    static func globalQueue(_ quality: DispatchQoS.QoSClass, threshold: UInt64) -> HeartbeatSource {
        HeartbeatSource(kind: .globalQueue, threshold: threshold) {
            DispatchQueue.global(qos: quality).async(execute: $0)
        }
    }

    /// The pool that runs Swift's tasks.
    static func cooperativePool(threshold: UInt64) -> HeartbeatSource {
        HeartbeatSource(kind: .cooperativePool, threshold: threshold) { item in
            Task.detached { item() }
        }
    }
}
