internal import CLinux
import Glibc

/// A system call that the system may forbid, tried in a child process.
///
/// Only for tools, because it forks. In a monitored program the capture engine tries the same calls on a thread.
package enum SystemTrial: CaseIterable, Sendable {
    case readMemory, ptrace, sampling, pageFaults, signal

    /// Carries out the call; waits for the child for 1 second at most.
    ///
    /// - Returns: Why it is refused, such as "Operation not permitted"; `nil` if it works.
    package func refusal() -> String? {
        let result = clinux_try(trial)
        switch result {
        case 0: return nil
        case ..<0: return "a filter ends the caller with signal \(-result)"
        default: return String(cString: strerror(result))
        }
    }

    private var trial: clinux_trial {
        switch self {
        case .readMemory: CLINUX_TRY_READ_MEMORY
        case .ptrace: CLINUX_TRY_PTRACE
        case .sampling: CLINUX_TRY_SAMPLING
        case .pageFaults: CLINUX_TRY_PAGE_FAULTS
        case .signal: CLINUX_TRY_SIGNAL
        }
    }
}

/// Whether the calling process is dumpable: other processes of its user may read its memory and trace it.
package var isDumpable: Bool { clinux_is_dumpable() }
