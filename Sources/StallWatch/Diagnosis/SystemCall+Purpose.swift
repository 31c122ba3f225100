extension SystemCall {
    /// The call's name; with its number only, if it is newer than the table.
    var name: String { SystemCallNames.current.name(number) ?? "system call \(number)" }

    /// What a wait in a system call is for.
    enum Purpose: String, Equatable, Sendable {
        /// Somebody else has to let go of something.
        case lock
        /// Time has to pass.
        case sleep
        /// Data have to come or go through a descriptor: a file, a pipe, a socket, a device.
        case io
        /// Anything else.
        case other
    }

    /// What the thread waits for in this call.
    ///
    /// A pure function of name and arguments.
    var purpose: Purpose {
        let name = name
        switch name {
        case "futex", "futex_waitv", "flock", "semop", "semtimedop":
            return .lock
        case "fcntl":
            // F_SETLKW and F_OFD_SETLKW (fcntl.h) are the only commands that wait.
            return argument(1) == 7 || argument(1) == 38 ? .lock : .other
        case "nanosleep", "clock_nanosleep":
            return .sleep
        case "poll", "ppoll":
            return argument(1) == 0 ? .sleep : .io
        case "select", "pselect6":
            return argument(0) == 0 ? .sleep : .io
        default:
            return Self.inputOutput.contains(name) ? .io : .other
        }
    }

    /// Whether a function of libc makes a call that waits for data.
    ///
    /// glibc's wrappers have the names of the calls, but for those with a 64 behind it.
    fileprivate static func waitsForData(_ function: String) -> Bool {
        inputOutput.contains(function) || inputOutput.contains(function + "64")
    }

    /// Calls that wait for data, by name.
    ///
    /// Opening, closing and looking up files is among them: those wait for the same disk or server as reading does.
    private static let inputOutput: Set<String> = [
        "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2",
        "sendfile",
        "splice", "tee", "vmsplice", "copy_file_range", "fsync", "fdatasync", "sync", "syncfs", "sync_file_range",
        "msync", "fallocate", "ftruncate", "truncate", "readahead", "fadvise64", "open", "openat", "openat2", "creat",
        "close", "stat", "fstat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink",
        "readlinkat", "getdents", "getdents64", "rename", "renameat", "renameat2", "unlink", "unlinkat", "link",
        "linkat",
        "symlink", "symlinkat", "mkdir", "mkdirat", "rmdir", "statfs", "fstatfs", "ioctl", "connect", "accept",
        "accept4",
        "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "epoll_wait", "epoll_pwait", "epoll_pwait2",
        "io_getevents", "io_pgetevents", "io_uring_enter", "mq_timedsend", "mq_timedreceive", "msgsnd", "msgrcv",
    ]
}

extension SystemCall.Purpose {
    /// What a function of libc makes its system call for; `nil` for one that is not known to wait for data.
    ///
    /// Only those wait often and shortly enough for a thread to be met in between: on the way into a call, or out of it.
    init?(ofFunction function: String) {
        guard SystemCall.waitsForData(function) else { return nil }
        self = .io
    }
}
