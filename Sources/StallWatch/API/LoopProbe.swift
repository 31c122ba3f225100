import StallReports
import LinuxSupport
import Synchronization

/// Tells a monitor of the turns of a loop that it cannot follow by itself: GLib, libuv, SDL, Qt, a game's own.
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
/// Both calls together cost two reads of the clock and a few atomic stores: no lock, no allocation, no system call. For
/// loops in C and C++ the same calls are in `CStallWatch.h`; ``handle`` is what they take.
public final class LoopProbe: Sendable {
    /// The name that reports give the loop.
    public let label: String
    /// What the calls go to: 0 while nobody watches.
    private let recorder = Atomic<UInt>(0)
    /// Every one that a call of the loop may still be in.
    private let kept = Mutex<[TurnRecorder]>([])

    /// Makes a probe.
    ///
    /// Until a monitor watches it, its calls do nothing.
    public init(label: String) {
        self.label = label
    }

    /// A turn begins: the loop has left its wait.
    ///
    /// A turn that has not been ended ends here.
    ///
    /// To be called on the loop's own thread.
    public func beginTurn() {
        guard let recorder = Self.recorder(recorder.load(ordering: .acquiring)) else { return }
        recorder._withUnsafeGuaranteedRef { recorder in
            recorder.noteThread()
            recorder.beginTurn(at: monotonicNow())
        }
    }

    /// The turn is over: the loop is about to wait.
    ///
    /// Does nothing if none has begun.
    public func endTurn() {
        guard let recorder = Self.recorder(recorder.load(ordering: .acquiring)) else { return }
        recorder._withUnsafeGuaranteedRef { $0.endTurn(at: monotonicNow()) }
    }

    /// What the functions in `CStallWatch.h` take.
    ///
    /// Holds for as long as the probe exists.
    public var handle: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    /// A monitor watches: from the next turn on it is told.
    ///
    /// - Throws: ``StallWatchError/Code/alreadyWatched`` while another one does.
    func attach(_ recorder: TurnRecorder) throws(StallWatchError) {
        let isFirst = kept.withLock { kept in
            guard exchange(0, for: Self.bits(recorder)) else { return false }
            // One that has been told of a turn was found by a call of the loop's thread, which has left the earlier ones.
            if let told = kept.lastIndex(where: { $0.lastThread != nil }) { kept.removeSubrange(..<told) }
            kept.append(recorder)
            return true
        }
        guard isFirst else {
            throw StallWatchError(
                .alreadyWatched, "another monitor watches the probe \(label): let it unwatch that, or stop it")
        }
    }

    /// The monitor watches no more.
    func detach(_ recorder: TurnRecorder) {
        _ = exchange(Self.bits(recorder), for: 0)
    }

    private func exchange(_ expected: UInt, for desired: UInt) -> Bool {
        recorder.compareExchange(expected: expected, desired: desired, ordering: .acquiringAndReleasing).exchanged
    }

    private static func bits(_ recorder: TurnRecorder) -> UInt {
        UInt(bitPattern: Unmanaged.passUnretained(recorder).toOpaque())
    }

    /// The recorder is in ``kept``, at least until the loop's thread has made a later call.
    private static func recorder(_ bits: UInt) -> Unmanaged<TurnRecorder>? {
        UnsafeRawPointer(bitPattern: bits).map(Unmanaged.fromOpaque)
    }
}

/// Follows a loop through its probe, which does all the work.
final class ProbeSource: LoopSource {
    let kind = LoopKind.probe
    private let probe: LoopProbe
    private let recorder: TurnRecorder

    init(_ probe: LoopProbe, _ recorder: TurnRecorder) throws(StallWatchError) {
        self.probe = probe
        self.recorder = recorder
        try probe.attach(recorder)
    }

    func remove() {
        probe.detach(recorder)
    }
}

/// `stallwatch_begin_turn` of `CStallWatch.h`.
@_cdecl("stallwatch_begin_turn")
public func stallwatchBeginTurn(_ handle: UnsafeMutableRawPointer?) {
    guard let handle else { return }
    Unmanaged<LoopProbe>.fromOpaque(handle)._withUnsafeGuaranteedRef { $0.beginTurn() }
}

/// `stallwatch_end_turn` of `CStallWatch.h`.
@_cdecl("stallwatch_end_turn")
public func stallwatchEndTurn(_ handle: UnsafeMutableRawPointer?) {
    guard let handle else { return }
    Unmanaged<LoopProbe>.fromOpaque(handle)._withUnsafeGuaranteedRef { $0.endTurn() }
}
