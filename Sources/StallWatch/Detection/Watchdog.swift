internal import CLinux
import Synchronization

/// The one thread that looks after every watched loop of a monitor.
///
/// It sleeps until the earliest moment at which a turn could be late, takes samples of stalls, and leaves everything
/// slow to the reporter. While every loop waits it is parked and never wakes up.
final class Watchdog: Sendable {
    private struct Watched {
        let loop: LoopMonitor
        var detector: StallDetector
        var record: StallRecord?
    }

    private struct Shared {
        var loops: [LoopMonitor] = []
        var isStopping = false
    }
    private let shared = Mutex(Shared())
    let alarm = WatchdogAlarm()
    private let threshold: UInt64
    private let capturesAllThreads: Bool
    private let submit: @Sendable (StallRecord) -> Void
    private let now: @Sendable () -> UInt64

    init(
        threshold: UInt64, capturesAllThreads: Bool = false, now: @escaping @Sendable () -> UInt64 = monotonicNow,
        submit: @escaping @Sendable (StallRecord) -> Void
    ) {
        self.threshold = threshold
        self.capturesAllThreads = capturesAllThreads
        self.now = now
        self.submit = submit
    }

    /// Looks after one more loop.
    func add(_ loop: LoopMonitor) {
        shared.withLock { $0.loops.append(loop) }
        alarm.ring()
    }

    /// Lets ``run(capturing:)`` return.
    func stop() {
        shared.withLock { $0.isStopping = true }
        alarm.ring()
    }

    /// The thread's work, until ``stop()``.
    func run(capturing capturer: any StackCapturing) {
        var watched: [Watched] = []
        while true {
            let (loops, isStopping) = shared.withLock { ($0.loops, $0.isStopping) }
            if isStopping { break }
            for loop in loops.dropFirst(watched.count) {
                watched.append(Watched(loop: loop, detector: StallDetector(threshold: threshold)))
            }
            var deadline = UInt64.max
            for index in watched.indices {
                deadline = min(deadline, look(at: &watched[index], capturer))
            }
            if deadline == .max {
                alarm.park { mayPark(watched) }
            } else {
                alarm.sleep(until: deadline)
            }
        }
        for index in watched.indices { leave(&watched[index]) }
    }

    /// Looks at one loop, does what has to be done, and returns when to look again.
    private func look(at watched: inout Watched, _ capturer: any StackCapturing) -> UInt64 {
        let time = now()
        let decision = watched.detector.look(watched.loop.snapshot(), at: time)
        for action in decision.actions {
            switch action {
            case .begin(let stall):
                watched.record = StallRecord(stall, of: watched.loop, threshold: threshold, at: time)
                let ended = watched.loop.recorder.markStalled(stall.turnBegan)
                sample(&watched, stall, capturer, hasEnded: ended != nil)
            case .sample(let stall):
                sample(&watched, stall, capturer, hasEnded: false)
            case .end(let stall):
                end(&watched, stall, at: watched.loop.recorder.stalledTurnEnd(stall.turnBegan) ?? time)
            }
        }
        return decision.nextLook ?? .max
    }

    private func sample(
        _ watched: inout Watched, _ stall: StallDetector.Stall, _ capturer: any StackCapturing, hasEnded: Bool
    ) {
        guard var record = watched.record else { return }
        let begun = now()
        let stack: Result<CapturedStack, CaptureError>
        do {
            stack = .success(try capturer.capture(thread: watched.loop.thread))
        } catch {
            stack = .failure(error)
        }
        record.samples.append(
            StallRecord.Sample(
                age: begun &- stall.start,
                isValid: !hasEnded && watched.loop.recorder.stalledTurnEnd(stall.turnBegan) == nil,
                stack: stack,
                images: capturer.images()
            )
        )
        record.duration = max(record.duration, now() &- stall.start)
        record.captureMethods = capturer.methods
        if capturesAllThreads, record.samples.count == 1 {
            record.captureOtherThreads(than: [watched.loop.thread, clinux_gettid()], with: capturer)
        }
        watched.record = record
        submit(record)
    }

    private func end(_ watched: inout Watched, _ stall: StallDetector.Stall, at end: UInt64) {
        watched.loop.recorder.clearStalled()
        guard var record = watched.record else { return }
        record.state = .ended
        // The moment at which the turn was seen to be over the threshold is the least that can be true.
        record.duration = max(end &- min(stall.start, end), record.threshold)
        watched.record = nil
        submit(record)
    }

    /// The monitor stops: a stall that still lasts is left as it was last seen.
    private func leave(_ watched: inout Watched) {
        watched.loop.remove()
        guard var record = watched.record, let stall = watched.detector.stall else { return }
        let time = now()
        if let ended = watched.loop.recorder.stalledTurnEnd(stall.turnBegan) {
            return end(&watched, stall, at: ended)
        }
        record.duration = time &- stall.start
        submit(record)
    }

    /// Whether no loop is in a turn, nothing new is to be watched, and nobody wants the watchdog to stop. A loop whose
    /// stall has used up its samples rings when the stall is over.
    private func mayPark(_ watched: [Watched]) -> Bool {
        let isUnchanged = shared.withLock { !$0.isStopping && $0.loops.count == watched.count }
        return isUnchanged
            && watched.allSatisfy { watched in
                let began = watched.loop.recorder.snapshot().began
                return began == nil || began == watched.detector.stall?.turnBegan
            }
    }
}

extension StallRecord {
    /// A stall that has just been seen.
    fileprivate init(_ stall: StallDetector.Stall, of loop: LoopMonitor, threshold: UInt64, at now: UInt64) {
        let age = now &- stall.start
        let startedAt = Timestamp(wallClockNanoseconds: wallClockNow() &- age)
        var generator = SystemRandomNumberGenerator()
        self.init(
            id: ReportIdentifier.make(at: startedAt, using: &generator),
            loop: StallReport.LoopDescription(
                label: loop.label, kind: loop.kind, turn: stall.turn, nesting: stall.nesting,
                thread: .init(loop.thread)
            ),
            threshold: threshold,
            startedAt: startedAt,
            watchdogLate: age &- threshold,
            state: .ongoing,
            duration: age
        )
    }
}
