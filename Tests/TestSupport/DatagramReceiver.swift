import Glibc
import LinuxSupport

/// A socket that receives datagrams, as a service manager has one for its services.
package final class DatagramReceiver: Sendable {
    /// The failure of a system call.
    package struct Failure: Error {
        package let errno: Int32
    }

    /// The value for `NOTIFY_SOCKET`.
    package let name: String
    private let descriptor: Int32
    /// The directory of a socket with a path.
    private let directory: TemporaryDirectory?

    /// Creates a socket.
    ///
    /// - Parameter isAbstract: Whether its name is in the abstract namespace instead of a directory.
    /// - Throws: ``Failure`` if the system has no socket.
    package init(isAbstract: Bool = false) throws {
        directory = isAbstract ? nil : try TemporaryDirectory()
        name = directory?.path("notify") ?? "@stallwatch-tests-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        var bytes = Array(name.utf8)
        if isAbstract { bytes[0] = 0 } else { bytes.append(0) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let result = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard descriptor >= 0, result == 0 else { throw Failure(errno: errno) }
    }

    deinit { close(descriptor) }

    /// Returns the next datagram; `nil` if none arrives before the deadline, in monotonic nanoseconds.
    package func next(until deadline: UInt64 = 0) -> String? {
        var buffer = [UInt8](repeating: 0, count: 8_192)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count >= 0 { return String(decoding: buffer.prefix(count), as: UTF8.self) }
            let now = monotonicNow()
            guard errno == EAGAIN || errno == EINTR, now < deadline else { return nil }
            var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            Glibc.poll(&poll, 1, Int32(min((deadline - now) / 1_000_000 + 1, 1_000)))
        }
    }

    /// Returns all datagrams that come until the deadline, in monotonic nanoseconds.
    package func all(until deadline: UInt64) -> [String] {
        var all: [String] = []
        while let message = next(until: deadline) { all.append(message) }
        return all
    }
}
