import CStalls
import Dispatch
import Foundation
import Synchronization

/// Threads that perform all kinds of actions until `stop`.
final class Chaos: Sendable {
    private let makers: [ChaosKind: ChaosMaker]

    init(_ kinds: [ChaosKind], seed: UInt64) {
        makers = Dictionary(
            uniqueKeysWithValues: kinds.enumerated().map { index, kind in
                (kind, ChaosMaker(kind.rawValue, pause: kind.pause, seed: seed &+ UInt64(index), kind.act))
            }
        )
    }

    /// Pauses exactly these kinds; returns once none of their actions is in progress.
    func leaveOut(_ kinds: Set<ChaosKind>) {
        for (kind, maker) in makers { maker.leaveOut(kinds.contains(kind)) }
    }

    func stop() -> [ChaosKind: ChaosCount] { makers.mapValues { $0.stop() } }
}

extension Scenario {
    /// The kinds of chaos that pause while the scenario runs, because they would change its right result.
    var leftOut: Set<ChaosKind> {
        if Self.shortOfCPU.contains(name) { return Set(ChaosKind.allCases) }
        return Self.endingByTheWallClock.contains(name) ? [.clock] : []
    }

    /// Scenarios that wait until a moment of the wall clock; a moment computed while the clock is set back has passed
    /// when the clock is restored.
    static let endingByTheWallClock: Set<String> = [
        "timer", "source0", "perform-block", "semaphore", "deadlock-main-queue", "deadlock-self", "deadlock-two",
        "deadlock-three",
    ]

    /// Scenarios with 5 ms of CPU time in 100; page copies after a fork(2), and waits for another thread's lock, would
    /// be a large part of that.
    static let shortOfCPU: Set<String> = ["throttled"]
}

struct ChaosCount: Equatable, Encodable, Sendable {
    var done = 0
    var failed = 0
    var isRefused = false
}

/// The kinds of actions that a soak repeats beside its loops, each on its own thread.
///
/// Together they take some percent of a CPU. They should meet StallWatch at every possible moment, without stalling the loops.
enum ChaosKind: String, CaseIterable, Codable, CodingKeyRepresentable, Sendable {
    /// fork(2) and waitpid(2). All memory is write-protected for a moment.
    case fork
    /// posix_spawn(3), which calls vfork(2) and execve(2), and waitpid(2).
    case exec
    /// dlopen(3) and dlclose(3), which change the images.
    case load
    /// C++ exceptions, which look up the images.
    case exception
    case allocation
    case memory
    /// A step of the machine's wall clock back by two seconds, and forward again.
    ///
    /// Back first: programs that sleep until a moment of the wall clock then sleep on. A first step forward would wake them
    /// too early.
    case clock

    var act: @Sendable () -> ChaosResult {
        switch self {
        case .fork: { .init(stalls_fork_and_wait()) }
        case .exec: { .init(stalls_exec_and_wait()) }
        case .load: { .init(stalls_load_and_unload()) }
        case .exception: { .init((0..<20).allSatisfy { _ in stalls_throw_and_catch() }) }
        case .allocation: { .init(stalls_allocate_and_free()) }
        case .memory: { .init(stalls_dirty_and_drop(16 << 20)) }
        case .clock: { .init(stalls_step_clock(5)) }
        }
    }

    /// The average pause between two actions, in milliseconds.
    var pause: Int {
        switch self {
        case .fork: 500
        case .exec, .memory: 1000
        case .load, .exception, .allocation: 200
        case .clock: 10_000
        }
    }
}

final class ChaosMaker: Sendable {
    private struct MakerProgress {
        var count = ChaosCount()
        var isLeftOut = false
    }

    // Held during each action, so that none is in progress while another thread holds it.
    private let state = Mutex(MakerProgress())
    private let stopping = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// Starts the thread; each pause is 0.5 to 1.5 times `pause`, which is in milliseconds.
    init(_ name: String, pause: Int, seed: UInt64, _ act: @escaping @Sendable () -> ChaosResult) {
        Thread.detachNewThread { [self] in
            NamedThread.nameThisThread("do-\(name)")
            Interruption.unblockOtherSignals()
            var random = SplitMix64(seed: seed)
            repeat {
                let milliseconds = Int.random(in: pause / 2...pause + pause / 2, using: &random)
                if stopping.wait(timeout: .now() + .milliseconds(milliseconds)) == .success { break }
            } while run(act)
            ended.signal()
        }
    }

    /// Pauses or resumes; returns once no action is in progress.
    func leaveOut(_ isLeftOut: Bool) {
        state.withLock { $0.isLeftOut = isLeftOut }
    }

    private func run(_ act: () -> ChaosResult) -> Bool {
        state.withLock { state in
            guard !state.isLeftOut else { return true }
            switch act() {
            case .done: state.count.done += 1
            case .failed: state.count.failed += 1
            case .refused: state.count.isRefused = true
            }
            return !state.count.isRefused
        }
    }

    /// Ends the thread and returns its counts; call it once.
    func stop() -> ChaosCount {
        stopping.signal()
        ended.wait()
        return state.withLock { $0.count }
    }
}

enum ChaosResult {
    case done, failed
    /// The system does not permit it.
    case refused

    init(_ isDone: Bool) {
        self = isDone ? .done : .failed
    }

    init(_ result: stalls_clock_result) {
        switch result {
        case STALLS_CLOCK_STEPPED: self = .done
        case STALLS_CLOCK_REFUSED: self = .refused
        default: self = .failed
        }
    }
}
