import CDemo
import Dispatch
import Foundation
import Synchronization

/// A thread that repeats an action at random moments.
final class ChaosMaker: Sendable {
    private struct State {
        var count = ChaosCount()
        var isLeftOut = false
    }

    // Held during each action, so that none is in progress while another thread holds it.
    private let state = Mutex(State())
    private let stopping = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// Starts the thread.
    ///
    /// Each pause is 0.5 to 1.5 times `pause`, which is in milliseconds.
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

    /// Pauses or resumes.
    ///
    /// Returns once no action is in progress.
    func leaveOut(_ isLeftOut: Bool) {
        state.withLock { $0.isLeftOut = isLeftOut }
    }

    /// Performs the action, and returns whether to continue.
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

    /// Ends the thread and returns its counts.
    ///
    /// Call it once.
    func stop() -> ChaosCount {
        stopping.signal()
        ended.wait()
        return state.withLock { $0.count }
    }
}
