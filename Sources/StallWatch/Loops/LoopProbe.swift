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
    /// Retained from when it is attached until the probe goes: `nil` while nobody watches.
    private let recorder = Atomic<UInt>(0)

    /// Makes a probe.
    ///
    /// Until a monitor watches it, its calls do nothing.
    public init(label: String) {
        self.label = label
    }

    deinit {
        if let known = Self.recorder(recorder.load(ordering: .acquiring)) { known.release() }
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

    /// A monitor watches: the first one that does is told, for ever.
    func attach(_ recorder: TurnRecorder) {
        let reference = Unmanaged.passRetained(recorder)
        let bits = UInt(bitPattern: reference.toOpaque())
        let (isFirst, _) = self.recorder.compareExchange(expected: 0, desired: bits, ordering: .acquiringAndReleasing)
        if !isFirst { reference.release() }
    }

    private static func recorder(_ bits: UInt) -> Unmanaged<TurnRecorder>? {
        UnsafeRawPointer(bitPattern: bits).map(Unmanaged.fromOpaque)
    }
}

/// Follows a loop through its probe, which does all the work.
final class ProbeSource: LoopSource {
    let kind = StallReport.LoopKind.probe
    private let probe: LoopProbe

    init(_ probe: LoopProbe) {
        self.probe = probe
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
