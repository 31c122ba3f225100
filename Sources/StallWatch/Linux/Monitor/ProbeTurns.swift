internal import CLinux
import LinuxSupport
import StallReports
import Synchronization

struct ProbeTurns: ~Copyable, Sendable {
    /// Returns whether the turn that has not ended is one: see ``LoopProbe/init(label:work:isInTurn:)``.
    let isInTurn: @Sendable (_ addresses: [UInt64]?) -> Bool
    let work: @Sendable () -> String?
    /// The recorder that the calls go to, as an address; 0 while no monitor watches the probe.
    private let recorder = Atomic<UInt>(0)
    private struct Kept {
        /// Every recorder that a call of the loop's thread may still use.
        var recorders: [TurnRecorder] = []
        /// The last one, as an address; 0 before.
        var last: UInt = 0
    }
    private let kept: ProcessMutex<Kept>
    /// The calls that have begun and ended, which only the loop's thread counts.
    private let entered = Atomic<UInt64>(0)
    private let left = Atomic<UInt64>(0)
    /// The most recorders without a call that are kept before it is found out whether a call uses one.
    static let maximumKept = 8

    init(
        work: @escaping @Sendable () -> String? = { nil },
        isInTurn: @escaping @Sendable (_ addresses: [UInt64]?) -> Bool = { _ in true },
        in process: @escaping @Sendable () -> UInt32 = { clinux_process_number() }
    ) {
        self.work = work
        self.isInTurn = isInTurn
        kept = ProcessMutex(in: process) { Kept() }
    }

    func begin() {
        call { recorder in
            recorder.rememberThread()
            recorder.beginTurn(at: monotonicNow())
        }
    }

    func end() { call { $0.endTurn(at: monotonicNow()) } }

    /// Begins a turn of another thread that began earlier, at a time in monotonic nanoseconds.
    func begin(at time: UInt64, of thread: Int32) {
        call { recorder in
            recorder.setThread(thread)
            recorder.beginTurn(at: time)
        }
    }

    /// Makes a call of the loop's thread to the recorder, if there is one.
    private func call(_ body: (TurnRecorder) -> Void) {
        entered.store(entered.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        // Pairs with the barrier in `isUnused`: that sees this call, or the call sees the recorder of that time.
        clinux_compiler_barrier()
        if let recorder = Self.recorder(recorder.load(ordering: .acquiring)) { recorder._withUnsafeGuaranteedRef(body) }
        left.store(left.load(ordering: .relaxed) &+ 1, ordering: .releasing)
    }

    /// Whether no call uses a recorder from before; `false` if the kernel cannot tell.
    private var isUnused: Bool {
        guard clinux_prepare_barrier_in_all_threads(), clinux_barrier_in_all_threads() else { return false }
        let left = left.load(ordering: .acquiring)
        return entered.load(ordering: .acquiring) == left
    }

    func attach(_ recorder: TurnRecorder) -> Bool {
        kept.withLock { kept in
            let known = self.recorder.load(ordering: .acquiring)
            // In a child of fork(2) it may be the parent's, whose monitor the child does not have.
            guard known == 0 || known != kept.last, exchange(known, for: Self.bits(recorder)) else { return false }
            // A recorder that has a thread was used by a later call of the loop's thread, which has left earlier ones.
            if let known = kept.recorders.lastIndex(where: { $0.lastThread != nil }) {
                kept.recorders.removeSubrange(..<known)
            }
            // A loop that makes no call may be watched again and again.
            if kept.recorders.count >= Self.maximumKept, isUnused { kept.recorders = [] }
            kept.recorders.append(recorder)
            kept.last = Self.bits(recorder)
            return true
        }
    }

    func detach(_ recorder: TurnRecorder) {
        _ = exchange(Self.bits(recorder), for: 0)
    }

    private func exchange(_ expected: UInt, for desired: UInt) -> Bool {
        recorder.compareExchange(expected: expected, desired: desired, ordering: .acquiringAndReleasing).exchanged
    }

    private static func bits(_ recorder: TurnRecorder) -> UInt {
        UInt(bitPattern: Unmanaged.passUnretained(recorder).toOpaque())
    }

    /// Converts an address back into a recorder, which ``kept`` retains until a later call of the loop's thread.
    private static func recorder(_ bits: UInt) -> Unmanaged<TurnRecorder>? {
        UnsafeRawPointer(bitPattern: bits).map(Unmanaged.fromOpaque)
    }
}

extension LoopProbe {
    /// Creates a probe of a loop that reports its waits and not its end.
    ///
    /// `isInTurn` returns whether the turn that has not ended is one, and not something that the thread does after the
    /// loop has ended. It gets the addresses of the thread's whole stack, or `nil` if they are not known. It runs on
    /// the watchdog, once for each turn over the threshold, and so does `work`, which returns what the thread works on.
    package convenience init(
        label: String, work: @escaping @Sendable () -> String? = { nil },
        isInTurn: @escaping @Sendable (_ addresses: [UInt64]?) -> Bool
    ) {
        self.init(label: label, turns: ProbeTurns(work: work, isInTurn: isInTurn))
    }

    /// Sends the probe's turns to `recorder`, from the next turn on; throws while another monitor watches the probe.
    func attach(_ recorder: TurnRecorder) throws(StallWatchError) {
        guard turns.attach(recorder) else {
            throw StallWatchError(
                .alreadyWatched,
                "another monitor watches the probe \(label): stop that watch, or that monitor, first")
        }
    }
}

final class ProbeSource: LoopSource {
    let kind = LoopKind.probe
    private let probe: LoopProbe
    private let recorder: TurnRecorder

    init(_ probe: LoopProbe, _ recorder: TurnRecorder) throws(StallWatchError) {
        self.probe = probe
        self.recorder = recorder
        try probe.attach(recorder)
    }

    func isInTurn(_ addresses: [UInt64]?) -> Bool { probe.turns.isInTurn(addresses) }

    var work: String? { probe.turns.work() }

    func remove() {
        probe.turns.detach(recorder)
    }
}
