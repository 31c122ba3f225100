import StallReports
import LinuxSupport
internal import CLinux
import Dispatch
import Synchronization

/// Follows a loop that cannot be observed: one tiny item is sent to it, and what it takes until that has run is its turn.
///
/// Items are sent twice per threshold and never while one is pending, so a loop that is stuck is sent one and no more. It
/// counts only from the first item that has run: before that, nobody is known to serve the loop.
final class HeartbeatSource: LoopSource {
    let kind: LoopKind
    private let send: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let owner: @Sendable () -> QueueOwner.Answer
    private let isUnneeded: @Sendable () -> Bool
    private let whenRemoved: @Sendable () -> Void

    private let isPending = Atomic<Bool>(false)
    private let lastSent = Atomic<UInt64>(0)
    private let lastRan = Atomic<UInt64>(0)
    /// When the item had run that came before the last one sent: by then at least, the loop was in order.
    private let ranBefore = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - owner: The thread that runs the loop now, if that can be known.
    ///   - isUnneeded: Whether the loop is followed better in another way, or has ended.
    ///   - whenRemoved: Called when the loop is followed no more.
    ///   - send: Submits an item to the loop. Called on the watchdog; must not wait.
    init(
        kind: LoopKind, owner: @escaping @Sendable () -> QueueOwner.Answer = { .unknown },
        unless isUnneeded: @escaping @Sendable () -> Bool = { false },
        whenRemoved: @escaping @Sendable () -> Void = {},
        send: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.kind = kind
        self.send = send
        self.owner = owner
        self.isUnneeded = isUnneeded
        self.whenRemoved = whenRemoved
    }

    func beat(_ recorder: TurnRecorder, threshold: UInt64, at now: UInt64) -> UInt64? {
        let interval = threshold / 2
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
        let ran = lastRan.load(ordering: .relaxed)
        ranBefore.store(ran, ordering: .relaxed)
        if ran != 0 { recorder.beginTurn(at: now) }
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
        default:
            switch owner() {
            case .thread(let thread): .thread(thread)
            // Not the thread that ran it last: that one may be doing something else, or be gone.
            case .nobody: .unknown
            case .unknown: recorder.lastThread.map(CaptureTarget.thread) ?? .unknown
            }
        }
    }

    func remove() { whenRemoved() }

    func startUncertainty(of began: UInt64) -> UInt64? {
        // Not when the last one ran: a late watchdog may look at a turn that is over.
        let healthy = ranBefore.load(ordering: .relaxed)
        return began > healthy ? began - healthy : 0
    }
}

extension LoopSource where Self == HeartbeatSource {
    /// A serial dispatch queue.
    static func queue(_ queue: DispatchQueue) -> HeartbeatSource {
        let lock = QueueOwner(queue)
        return HeartbeatSource(kind: .dispatchQueue, owner: { lock.answer() }) { item in
            queue.async {
                lock.check()
                item()
            }
        }
    }

    /// The main dispatch queue, as long as nobody runs the main run loop.
    static func mainQueue(unless isRunLoopUsed: @escaping @Sendable () -> Bool) -> HeartbeatSource {
        let lock = QueueOwner(.main)
        return HeartbeatSource(kind: .mainQueue, owner: { lock.answer() }, unless: isRunLoopUsed) { item in
            DispatchQueue.main.async {
                lock.check()
                item()
            }
        }
    }

    /// A global queue of libdispatch.
    static func globalQueue(_ quality: DispatchQoS.QoSClass) -> HeartbeatSource {
        HeartbeatSource(kind: .globalQueue) { DispatchQueue.global(qos: quality).async(execute: $0) }
    }

    /// The pool that runs Swift's tasks.
    static func cooperativePool() -> HeartbeatSource {
        HeartbeatSource(kind: .cooperativePool) { item in
            Task.detached { item() }
        }
    }
}
