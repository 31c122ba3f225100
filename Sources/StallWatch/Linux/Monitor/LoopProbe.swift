import LinuxSupport
import StallReports
import Synchronization

/// Reports the turns of a loop that a monitor cannot observe by itself, such as GLib, libuv, SDL, Qt or a game loop.
///
/// ```swift
/// let probe = LoopProbe(label: "game")
/// try monitor.watch(.probe(probe))
/// while running {
///     probe.beginTurn()
///     handleEvents(); update(); draw()
///     probe.endTurn()          // before it waits for the next event or frame
///     waitForNextFrame()
/// }
/// ```
///
/// A pair of calls costs two clock reads and a few atomic stores. It takes no lock and allocates nothing. It makes a
/// system call only to learn a new thread's id, or to wake the watchdog: for the first turn after all loops have
/// waited, and when a stall ends. Loops in C and C++ call the functions of `CStallWatch.h` with the probe's ``handle``.
public final class LoopProbe: Sendable {
    /// The loop's name in reports.
    public let label: String
    /// Returns whether the turn that has not ended is one: see ``init(label:isInTurn:)``.
    let isInTurn: @Sendable (_ addresses: [UInt64]?) -> Bool
    let work: @Sendable () -> String?
    /// The recorder that the calls go to, as an address; 0 while no monitor watches the probe.
    private let recorder = Atomic<UInt>(0)
    /// Keeps alive every recorder that a call of the loop's thread may still use.
    private let kept = Mutex<[TurnRecorder]>([])

    /// Creates a probe.
    ///
    /// Its calls do nothing until a monitor watches it.
    ///
    /// - Parameter label: The loop's name in reports.
    public init(label: String) {
        self.label = label
        isInTurn = { _ in true }
        work = { nil }
    }

    /// Creates a probe of a loop that reports its waits and not its end.
    ///
    /// `isInTurn` returns whether the turn that has not ended is one, and not something that the thread does after the
    /// loop has ended. It gets the addresses of the thread's whole stack, or `nil` if they are not known. It runs on
    /// the watchdog, once for each turn over the threshold, and so does `work`, which returns what the thread works on.
    package init(
        label: String, work: @escaping @Sendable () -> String? = { nil },
        isInTurn: @escaping @Sendable (_ addresses: [UInt64]?) -> Bool
    ) {
        self.label = label
        self.work = work
        self.isInTurn = isInTurn
    }

    /// Begins a turn when the loop has left its wait.
    ///
    /// If the previous turn has not ended, it ends here.
    ///
    /// Call it on the loop's own thread only.
    public func beginTurn() {
        guard let recorder = Self.recorder(recorder.load(ordering: .acquiring)) else { return }
        recorder._withUnsafeGuaranteedRef { recorder in
            recorder.noteThread()
            recorder.beginTurn(at: monotonicNow())
        }
    }

    /// Ends the turn when the loop is about to wait.
    ///
    /// Does nothing if no turn has begun. Call it on the loop's own thread only.
    public func endTurn() {
        guard let recorder = Self.recorder(recorder.load(ordering: .acquiring)) else { return }
        recorder._withUnsafeGuaranteedRef { $0.endTurn(at: monotonicNow()) }
    }

    /// Begins a turn of another thread that began earlier, at a time in monotonic nanoseconds.
    package func beginTurn(at time: UInt64, of thread: Int32) {
        guard let recorder = Self.recorder(recorder.load(ordering: .acquiring)) else { return }
        recorder._withUnsafeGuaranteedRef { recorder in
            recorder.note(thread: thread)
            recorder.beginTurn(at: time)
        }
    }

    /// Sends the probe's turns to `recorder`, from the next turn on; throws while another monitor watches the probe.
    func attach(_ recorder: TurnRecorder) throws(StallWatchError) {
        try kept.withLock { kept throws(StallWatchError) in
            guard exchange(0, for: Self.bits(recorder)) else {
                throw StallWatchError(
                    .alreadyWatched,
                    "another monitor watches the probe \(label): call that monitor's unwatch(_:) or stop() first")
            }
            // A recorder that has a thread was used by a later call of the loop's thread, which has left earlier ones.
            if let known = kept.lastIndex(where: { $0.lastThread != nil }) { kept.removeSubrange(..<known) }
            kept.append(recorder)
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

final class ProbeSource: LoopSource {
    let kind = LoopKind.probe
    private let probe: LoopProbe
    private let recorder: TurnRecorder

    init(_ probe: LoopProbe, _ recorder: TurnRecorder) throws(StallWatchError) {
        self.probe = probe
        self.recorder = recorder
        try probe.attach(recorder)
    }

    func isInTurn(_ addresses: [UInt64]?) -> Bool { probe.isInTurn(addresses) }

    var work: String? { probe.work() }

    func remove() {
        probe.detach(recorder)
    }
}
