import Glibc

/// Sends messages to the service manager that started the process, by the protocol of sd_notify(3).
///
/// The protocol is public and stable: one datagram per message to the UNIX socket that the environment names. It is
/// written here, because libsystemd is missing in slim images and would be a new dependency of every program.
///
/// `Sendable`: the descriptor and the address never change, and several threads may send at once.
package final class ServiceNotifier: Sendable {
    private let descriptor: KeptDescriptor
    private let address: sockaddr_un
    private let addressLength: socklen_t

    /// Opens a socket for messages to a value of `NOTIFY_SOCKET`: an absolute path, or `@` and an abstract name.
    package init(socket path: String) throws(SystemError) {
        var name = Array(path.utf8)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isAbstract = name.first == UInt8(ascii: "@")
        // A path ends with a zero; an abstract name begins with one, and every byte of it counts (unix(7)).
        if isAbstract { name[0] = 0 } else { name.append(0) }
        guard isAbstract ? name.count > 1 : path.hasPrefix("/"),
            name.count <= MemoryLayout.size(ofValue: address.sun_path)
        else {
            throw SystemError(
                "NOTIFY_SOCKET is \"\(path)\", which is neither an absolute path nor @ and a name, of at most 107 bytes"
            )
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        self.address = address
        addressLength = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let descriptor = outsideOfStreams(socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        guard descriptor >= 0 else { throw SystemError("no socket can be opened for NOTIFY_SOCKET", errno: errno) }
        self.descriptor = KeptDescriptor(descriptor)
        // After chroot(2), or in another mount namespace, the path leads elsewhere.
        _ = withAddress { connect(descriptor, $0, addressLength) }
    }

    private func withAddress<Result>(_ body: (UnsafePointer<sockaddr>) -> Result) -> Result {
        withUnsafePointer(to: address) { address in
            // Every address of a socket begins like `sockaddr` (bind(2)).
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0) }
        }
    }

    deinit { descriptor.close() }

    /// Sends assignments such as `READY=1`, one per line, and never waits; returns the error number if that fails.
    package func send(_ message: String) -> Int32? {
        guard descriptor.isOpen else { return EBADF }
        let (bytes, flags) = (Array(message.utf8), Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        var count = Glibc.send(descriptor.number, bytes, bytes.count, flags)
        // The manager was not there yet, or has another socket since it was started again.
        if count < 0, errno == ENOTCONN || errno == ECONNREFUSED {
            count = withAddress { sendto(descriptor.number, bytes, bytes.count, flags, $0, addressLength) }
        }
        return count == bytes.count ? nil : count < 0 ? errno : EMSGSIZE
    }

    /// Returns the time between two `WATCHDOG=1`, in nanoseconds: half of `WATCHDOG_USEC` (sd_watchdog_enabled(3)).
    package static func watchdogPeriod(microseconds: String?, process: String?, own: Int32 = getpid()) -> UInt64? {
        guard let limit = microseconds.flatMap(UInt64.init), limit > 0, limit < UInt64.max / 1_000 else { return nil }
        guard process.map({ Int32($0) == own }) ?? true else { return nil }
        return limit * 1_000 / 2
    }

    /// Returns whether this process is the one that the manager has started, by the values of `SYSTEMD_EXEC_PID` and
    /// `WATCHDOG_PID`, which its children inherit (systemd.exec(5)); without them it is taken for that one.
    package static func isMain(_ processes: [String?], own: Int32 = getpid()) -> Bool {
        processes.compactMap { $0 }.allSatisfy { Int32($0) == own }
    }

    /// Returns a status as the manager shows it: one line of at most 1,000 bytes.
    package static func statusLine(_ text: String) -> String {
        String(text.map { $0.isNewline ? " " : $0 }).prefix(bytes: 1_000)
    }
}
