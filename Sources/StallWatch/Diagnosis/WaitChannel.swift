import LinuxSupport

/// The kernel function that a thread waits in (proc_pid_wchan(5)).
enum WaitChannel: Equatable, Sendable {
    /// The system does not show it.
    case hidden
    /// The thread does not wait.
    case none
    case function(String)

    /// Parses the file's text, `nil` for a file that is missing or empty.
    init(_ text: ByteCursor?) {
        var text = text
        switch text?.word() {
        case nil: self = .hidden
        case "0": self = .none
        case .some(let name): self = .function(name)
        }
    }

    /// The function's name; `nil` if there is none or it is hidden.
    var function: String? {
        if case .function(let name) = self { return name }
        return nil
    }

    /// Returns the purpose of the calls that wait in a kernel function; `nil` if calls of several purposes do.
    ///
    /// The names are those of Linux 5.4 to 6.18. poll(2) and select(2) wait for a time or for data in the same function, and
    /// a wait for a page of a file may be a call's or a page fault's.
    static func purpose(ofFunction name: String) -> SystemCall.Purpose? {
        // The compiler's own copies of a function have a suffix, as in do_wait.constprop.0.
        let base = name.prefix { $0 != "." }
        if base.contains("futex") { return .lock }
        if base.hasSuffix("nanosleep") || base == "common_nsleep" { return .sleep }
        switch base {
        case "locks_lock_inode_wait", "flock_lock_inode_wait", "fcntl_setlk": return .lock
        case "do_wait", "kernel_wait4": return .other
        case "pipe_read", "pipe_write", "pipe_wait", "anon_pipe_read", "anon_pipe_write", "wait_for_partner", "ep_poll",
            "do_epoll_wait", "unix_stream_data_wait", "unix_stream_read_generic", "unix_wait_for_peer", "sk_wait_data",
            "sk_stream_wait_memory", "inet_csk_accept", "__skb_wait_for_more_packets", "n_tty_read":
            return .io
        default: return nil
        }
    }
}
