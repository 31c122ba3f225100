import LinuxSupport
import StackCapture
import StallReports

extension ThreadReading {
    /// What the thread does, concluded from all that the system shows.
    var activity: ThreadActivity { ThreadActivity(shown: shown, state: state, waitChannel: waitChannel) }
}

extension WaitChannel {
    /// Returns the purpose of the calls that wait in a kernel function; `nil` if calls of several purposes do.
    ///
    /// The names are those of Linux 5.4 to 6.18. poll(2) and select(2) wait for a time or for data in the same function, and
    /// a wait for a page of a file may be a call's or a page fault's.
    static func purpose(ofFunction name: String) -> StallReport.CauseKind? {
        // The compiler's own copies of a function have a suffix, as in do_wait.constprop.0.
        let base = name.prefix { $0 != "." }
        if base.contains("futex") { return .lock }
        if base.hasSuffix("nanosleep") || base == "common_nsleep" { return .sleep }
        switch base {
        case "locks_lock_inode_wait", "flock_lock_inode_wait", "fcntl_setlk": return .lock
        case "do_wait", "kernel_wait4": return .syscall
        case "pipe_read", "pipe_write", "pipe_wait", "anon_pipe_read", "anon_pipe_write", "wait_for_partner", "ep_poll",
            "do_epoll_wait", "unix_stream_data_wait", "unix_stream_read_generic", "unix_wait_for_peer", "sk_wait_data",
            "sk_stream_wait_memory", "inet_csk_accept", "__skb_wait_for_more_packets", "n_tty_read":
            return .io
        default: return nil
        }
    }
}
