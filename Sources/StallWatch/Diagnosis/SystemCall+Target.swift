import LinuxSupport
import Glibc

extension SystemCall {
    /// Describes the target of the call: a file's path, a socket's peer, the length of a sleep, an awaited process.
    ///
    /// Only reads names and changes no descriptor. Takes about 10 us of the caller's time.
    ///
    /// - Parameter memory: Reads the memory that the call's arguments point to.
    /// - Returns: The description; `nil` if the call has no named target.
    func target(memory: any MemoryReading) -> String? {
        let name = name
        switch name {
        case "nanosleep":
            return Self.duration(at: argument(0), memory)
        case "clock_nanosleep":
            // With TIMER_ABSTIME (1) the argument is a point in time, not a duration.
            return argument(1) & 1 == 0 ? Self.duration(at: argument(2), memory) : nil
        case "wait4":
            return Self.awaited(Int32(truncatingIfNeeded: argument(0)))
        case "waitid":
            // P_PID = 1.
            return argument(0) == 1 ? Self.awaited(Int32(truncatingIfNeeded: argument(1))) : "any child"
        case "poll", "ppoll":
            return Self.polled(at: argument(0), count: argument(1), memory)
        case "open", "creat", "stat", "lstat", "access", "readlink", "unlink", "mkdir", "rmdir", "truncate", "statfs":
            return memory.string(at: argument(0))
        case "openat", "openat2", "newfstatat", "statx", "faccessat", "faccessat2", "readlinkat", "unlinkat", "mkdirat":
            return memory.string(at: argument(1))
        case "connect":
            return SocketName.decode(memory.bytes(at: argument(1), count: Int(min(argument(2), 128))) ?? [])
                ?? Self.descriptor(argument(0))
        case "sendto":
            return SocketName.decode(memory.bytes(at: argument(4), count: Int(min(argument(5), 128))) ?? [])
                ?? Self.descriptor(argument(0))
        default:
            return Self.takesDescriptor.contains(name) ? Self.descriptor(argument(0)) : nil
        }
    }

    /// Whether the call's first argument is a descriptor.
    var takesDescriptor: Bool { Self.takesDescriptor.contains(name) }

    /// The names of the calls whose first argument is the descriptor that they wait on.
    private static let takesDescriptor: Set<String> = [
        "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2", "fsync",
        "fdatasync", "syncfs", "sync_file_range", "fallocate", "ftruncate", "readahead", "fadvise64", "close", "fstat",
        "fstatfs", "getdents64", "ioctl", "accept", "accept4", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg",
        "epoll_wait", "epoll_pwait", "epoll_pwait2", "flock", "fcntl", "splice", "copy_file_range", "sendfile", "tee",
    ]

    /// Formats a struct timespec in milliseconds; `nil` if it cannot be read or is invalid.
    private static func duration(at address: UInt64, _ memory: any MemoryReading) -> String? {
        guard let seconds = memory.word(at: address), let nanoseconds = memory.word(at: address &+ 8),
            seconds < 1 << 40, nanoseconds < 1_000_000_000
        else { return nil }
        let microseconds = seconds * 1_000_000 + nanoseconds / 1_000
        return microseconds % 1_000 == 0 ? "\(microseconds / 1_000) ms" : "\(Double(microseconds) / 1_000) ms"
    }

    private static func awaited(_ process: Int32) -> String {
        guard process > 0 else { return "any child" }
        guard let name = readSmallFile("/proc/\(process)/comm").map(firstLine) else { return "process \(process)" }
        return "process \(process) \"\(name)\""
    }

    /// Describes the first four descriptors of a poll(2) call: struct pollfd is an int and two shorts.
    private static func polled(at address: UInt64, count: UInt64, _ memory: any MemoryReading) -> String? {
        guard count > 0 else { return nil }
        let shown = min(count, 4)
        let names = (0..<shown).compactMap { index in
            memory.integer(at: address &+ index * 8).flatMap { descriptor(UInt64(UInt32(bitPattern: $0))) }
        }
        guard !names.isEmpty else { return nil }
        return names.joined(separator: ", ") + (count > shown ? " and \(count - shown) more" : "")
    }

    /// Describes an open descriptor of this process: a path, a socket with its peer, a pipe.
    static func descriptor(_ argument: UInt64) -> String? {
        let number = Int32(truncatingIfNeeded: argument)
        guard number >= 0, let link = readLink("/proc/self/fd/\(number)") else { return nil }
        return link.hasPrefix("socket:") ? SocketName.peer(of: number) ?? link : link
    }
}
