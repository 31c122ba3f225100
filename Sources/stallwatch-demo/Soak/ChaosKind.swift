import CDemo
import Dispatch
import Foundation
import Synchronization

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
    /// malloc(3) and free(3).
    case allocation
    /// Memory that is mapped, dirtied and returned.
    case memory
    /// A step of the machine's wall clock back by two seconds, and forward again.
    ///
    /// Back first: programs that sleep until a moment of the wall clock then sleep on. A first step forward would wake them
    /// too early.
    case clock

    /// Performs the action once.
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
