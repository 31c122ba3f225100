internal import CLinux
import Glibc

package enum UnixSocket {
    /// The longest path of a socket, in bytes: `sun_path` without its zero byte.
    package static let maximumPathBytes = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// Creates a socket for this process's user only, and listens without blocking.
    package static func listen(at path: String, backlog: Int32) throws(SystemError) -> KeptDescriptor {
        let advice = "choose another directory for the control socket"
        guard path.utf8.count <= maximumPathBytes else {
            throw SystemError("the path \(path) has more than \(maximumPathBytes) bytes: choose a shorter directory")
        }
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError("no socket can be created", errno: errno) }
        let opened = KeptDescriptor(descriptor)
        let failure = call(bind, descriptor, path)
        guard failure == 0 else {
            opened.close()
            throw SystemError("the socket \(path) cannot be created: \(advice)", errno: failure)
        }
        // Before listen(2) every connection is refused, so no other user connects meanwhile.
        guard chmod(pathBytes(path), 0o600) == 0, Glibc.listen(opened.usable, backlog) == 0 else {
            let reason = errno
            unlink(pathBytes(path))
            opened.close()
            throw SystemError("the socket \(path) cannot be opened: \(advice)", errno: reason)
        }
        return opened
    }

    /// The least age of a socket that counts as left over, in nanoseconds: a new one has no listener yet.
    private static let leftoverAge = 60_000_000_000
    private static let maximumLeftovers = 1_000

    /// Removes the sockets with such names whose processes have ended; at most some, because each takes system calls.
    package static func removeLeftovers(in directory: String, where isOurs: (String) -> Bool) {
        let names = (directoryEntries(directory) ?? []).map(\.name).filter(isOurs)
        for path in names.prefix(maximumLeftovers).map({ "\(directory)/\($0)" }) {
            // A file's time may be any number.
            let age = FileStatus(path: path).map { Int(clamping: wallClockNow()) &- $0.changedAt } ?? 0
            guard age > leftoverAge else { continue }
            switch connect(to: path) {
            case .connected(let descriptor): close(descriptor)
            case .failed(ECONNREFUSED): unlink(pathBytes(path))
            case .failed: break
            }
        }
    }

    package enum Connection {
        /// The descriptor, which does not block.
        case connected(Int32)
        /// The error number.
        case failed(Int32)
    }

    /// Connects to a socket whose path may be of any length; a full backlog gives EAGAIN, so it never blocks.
    package static func connect(to path: String) -> Connection {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let folder = parts.dropLast().joined(separator: "/")
        // A long path is reached through its folder's descriptor.
        var directory: KeptDescriptor?
        var shortPath = path
        if path.utf8.count > maximumPathBytes {
            let number = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard number >= 0 else { return .failed(errno) }
            directory = KeptDescriptor(number)
            shortPath = "/proc/self/fd/\(number)/\(parts.last ?? "")"
        }
        defer { directory?.close() }
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { return .failed(errno) }
        let opened = KeptDescriptor(descriptor)
        let failure = call(Glibc.connect, descriptor, shortPath)
        guard failure == 0 else {
            opened.close()
            return .failed(failure)
        }
        return opened.isOpen ? .connected(descriptor) : .failed(EBADF)
    }

    /// Returns the process at the other end of a connection, and its user; for a client, the one that called listen(2).
    package static func peer(of descriptor: Int32) -> (process: Int32, user: UInt32)? {
        var (process, user): (Int32, UInt32) = (0, 0)
        return clinux_peer(descriptor, &process, &user) ? (process, user) : nil
    }

    /// Waits until a descriptor is ready for POLLIN or POLLOUT; `false` at the deadline, in monotonic nanoseconds.
    package static func wait(for descriptor: Int32, _ events: Int32, until deadline: UInt64) -> Bool {
        while true {
            var polled = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
            let count = poll(&polled, 1, milliseconds(until: deadline))
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }

    /// Returns the time until `deadline` for poll(2), rounded up: 0 if it has passed, at most a minute.
    package static func milliseconds(until deadline: UInt64) -> Int32 {
        let now = monotonicNow()
        guard deadline > now else { return 0 }
        return Int32((deadline - now) / 1_000_000 >= 60_000 ? 60_000 : (deadline - now) / 1_000_000 + 1)
    }

    /// Writes all bytes to a connection that does not block; returns `false` if it fails or misses the deadline.
    @discardableResult
    package static func send(_ bytes: [UInt8], to descriptor: Int32, until deadline: UInt64) -> Bool {
        send(bytes, to: KeptDescriptor(descriptor), until: deadline)
    }

    @discardableResult
    package static func send(_ bytes: [UInt8], to connection: KeptDescriptor, until deadline: UInt64) -> Bool {
        bytes.withUnsafeBytes { buffer in
            var left = buffer[...]
            while !left.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: left)
                // A peer that is gone is an error here, and no SIGPIPE.
                let count = Glibc.send(connection.usable, part.baseAddress, part.count, Int32(MSG_NOSIGNAL))
                if count > 0 {
                    left = left.dropFirst(count)
                } else if errno == EAGAIN {
                    guard wait(for: connection.number, POLLOUT, until: deadline) else { return false }
                } else if errno != EINTR {
                    return false
                }
                guard monotonicNow() < deadline else { return false }
            }
            return true
        }
    }

    /// Reads a connection to its end; `nil` if it has over `limit` bytes, misses the deadline or fails.
    package static func receive(from descriptor: Int32, limit: Int, until deadline: UInt64) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= limit {
            guard wait(for: descriptor, POLLIN, until: deadline) else { return nil }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count == 0 { return bytes }
            if count > 0 { bytes += buffer.prefix(count) } else if errno != EINTR, errno != EAGAIN { return nil }
        }
        return nil
    }

    /// Calls bind(2) or connect(2), and returns 0 or an error number.
    private static func call(
        _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ descriptor: Int32, _ path: String
    ) -> Int32 {
        let bytes = pathData(path)
        guard bytes.count <= maximumPathBytes else { return ENAMETOOLONG }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return withUnsafePointer(to: &address) { address in
            // The C interface: every kind of address begins like a sockaddr.
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                function(descriptor, address, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 ? 0 : errno
            }
        }
    }
}
