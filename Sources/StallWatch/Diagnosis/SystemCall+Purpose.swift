extension SystemCall {
    /// The call's name; `system call <number>` if the call is newer than the table.
    var name: String { SystemCallNames.current.name(number) ?? "system call \(number)" }

    /// The purpose of a wait in a system call.
    enum Purpose: String, Equatable, Sendable {
        /// Waits until another thread or process releases a lock.
        case lock
        /// Waits for a time.
        case sleep
        /// Waits for data on a descriptor: a file, a pipe, a socket, a device.
        case io
        /// Anything else.
        case other
    }

    /// The purpose of this call, a pure function of its name and arguments.
    var purpose: Purpose {
        let name = name
        switch name {
        case "futex", "futex_waitv", "flock", "semop", "semtimedop":
            return .lock
        case "fcntl":
            // Only F_SETLKW and F_OFD_SETLKW (fcntl.h) wait.
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

    /// Returns whether a libc function makes a call that waits for data.
    ///
    /// glibc's wrappers have the names of the calls, except for a suffix 64.
    fileprivate static func waitsForData(_ function: String) -> Bool {
        inputOutput.contains(function) || inputOutput.contains(function + "64")
    }

    /// Returns whether a call of that name writes to a disk what is in memory.
    static func flushes(_ name: String) -> Bool {
        ["fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range"].contains(name)
    }

    /// The names of the calls that wait for data.
    ///
    /// They include opening, closing and finding files, which wait for the same disk or server as reading.
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
    /// Creates the purpose of a libc function's system call; `nil` unless the call waits for data.
    ///
    /// Only such calls are frequent and short enough that a thread is observed between them, entering or leaving a
    /// call.
    init?(ofFunction function: String) {
        guard SystemCall.waitsForData(function) else { return nil }
        self = .io
    }
}
