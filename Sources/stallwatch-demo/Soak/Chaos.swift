import CDemo
import Dispatch
import Foundation
import Synchronization

/// What a soak's program does beside its loops, again and again, each kind on a thread of its own.
///
/// It is kept light, some percent of a CPU in all: it is to meet StallWatch at every possible moment, and not to stall the
/// loops by itself.
enum ChaosKind: String, CaseIterable, Codable, CodingKeyRepresentable, Sendable {
    /// fork(2) and waitpid(2): for a moment, all memory is write-protected.
    case fork
    /// posix_spawn(3), which is vfork(2) and execve(2), and waitpid(2).
    case exec
    /// dlopen(3) and dlclose(3): the images change.
    case load
    /// C++ exceptions, which look up the images, too.
    case exception
    /// malloc(3) and free(3).
    case allocation
    /// Memory that is mapped, dirtied and given back.
    case memory
    /// The machine's wall clock is set back by two seconds and forth again.
    ///
    /// Back first: a program that sleeps until a moment of the wall clock then sleeps on. Forth first would wake up each of
    /// them too early.
    case clock

    /// What is done each time.
    var act: @Sendable () -> ChaosResult {
        switch self {
        case .fork: { .init(demo_fork_and_wait()) }
        case .exec: { .init(demo_exec_and_wait()) }
        case .load: { .init(demo_load_and_unload()) }
        case .exception: { .init((0..<20).allSatisfy { _ in demo_throw_and_catch() }) }
        case .allocation: { .init(demo_allocate_and_free()) }
        case .memory: { .init(demo_dirty_and_drop(16 << 20)) }
        case .clock: { .init(demo_step_clock(5)) }
        }
    }

    /// How long it is left alone after each time, on average, in milliseconds.
    var pause: Int {
        switch self {
        case .fork: 500
        case .exec, .memory: 1000
        case .load, .exception, .allocation: 200
        case .clock: 10_000
        }
    }
}

/// What came of one act.
enum ChaosResult {
    case done, failed
    /// The system does not permit it.
    case refused

    init(_ isDone: Bool) {
        self = isDone ? .done : .failed
    }

    init(_ result: demo_clock_result) {
        switch result {
        case DEMO_CLOCK_STEPPED: self = .done
        case DEMO_CLOCK_REFUSED: self = .refused
        default: self = .failed
        }
    }
}

/// How often something was done.
struct ChaosCount: Equatable, Encodable, Sendable {
    var done = 0
    var failed = 0
    var isRefused = false
}

/// All kinds of chaos, at work until they are stopped.
final class Chaos: Sendable {
    private let makers: [ChaosKind: ChaosMaker]

    /// Starts a thread for each of `kinds`.
    init(_ kinds: [ChaosKind], seed: UInt64) {
        makers = Dictionary(
            uniqueKeysWithValues: kinds.enumerated().map { index, kind in
                (kind, ChaosMaker(kind.rawValue, pause: kind.pause, seed: seed &+ UInt64(index), kind.act))
            }
        )
    }

    /// Leaves out `kinds` for now and no others.
    ///
    /// Returns when none of them is at work any more.
    func leaveOut(_ kinds: Set<ChaosKind>) {
        for (kind, maker) in makers { maker.leaveOut(kinds.contains(kind)) }
    }

    /// Ends and joins all threads, and returns what they did.
    func stop() -> [ChaosKind: ChaosCount] { makers.mapValues { $0.stop() } }
}

/// A thread that does one thing again and again, at moments that it chooses at random.
final class ChaosMaker: Sendable {
    private struct State {
        var count = ChaosCount()
        var isLeftOut = false
    }

    // Held during each act: who changes it knows that none is under way.
    private let state = Mutex(State())
    private let stopping = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// Starts it; each pause is half to one and a half times as long as `pause`, in milliseconds.
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

    /// Does nothing for now, or goes on.
    ///
    /// Returns when no act is under way.
    func leaveOut(_ isLeftOut: Bool) {
        state.withLock { $0.isLeftOut = isLeftOut }
    }

    /// Returns whether it makes sense to go on.
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

    /// To be called once.
    func stop() -> ChaosCount {
        stopping.signal()
        ended.wait()
        return state.withLock { $0.count }
    }
}

extension Scenario {
    /// What is left out while it runs, because it would rightly change what becomes of it.
    var leftOut: Set<ChaosKind> {
        if Self.shortOfCPU.contains(name) { return Set(ChaosKind.allCases) }
        return Self.endingByTheWallClock.contains(name) ? [.clock] : []
    }

    /// These wait until a moment of the wall clock.
    ///
    /// One that is chosen while the clock is two seconds slow is over at once when it is put right.
    static let endingByTheWallClock: Set<String> = [
        "timer", "source0", "perform-block", "semaphore", "deadlock-main-queue", "deadlock-self",
    ]

    /// This has 5 ms of CPU time in 100.
    ///
    /// The copies of pages that a fork(2) makes necessary, and waits for a lock of another thread's, are a large part of that.
    static let shortOfCPU: Set<String> = ["throttled"]
}
