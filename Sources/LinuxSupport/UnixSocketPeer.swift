import Glibc

/// The other end of a connected Unix socket.
package enum UnixSocketPeer {
    /// Returns the process that made the connection's other end (SO_PEERCRED in unix(7)); `nil` if there is none.
    ///
    /// It is 0 for a process of another PID namespace. Both ends of a socketpair(2) name its caller.
    package static func process(of descriptor: Int32) -> Int32? {
        // Without a connection the kernel tells the user -1.
        guard isUnix(descriptor), let peer = UnixSocket.peer(of: descriptor), peer.user != .max else { return nil }
        return peer.process
    }

    /// Returns the number in `socket:[4711]`; `nil` for the link of another file.
    package static func number(inLink link: String) -> Substring? {
        link.hasPrefix("socket:[") && link.hasSuffix("]") ? link.dropFirst(8).dropLast() : nil
    }

    package static func isUnix(_ descriptor: Int32) -> Bool {
        var (family, length): (Int32, socklen_t) = (0, socklen_t(MemoryLayout<Int32>.size))
        return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && family == AF_UNIX
    }

    /// Whether the socket has another end; a datagram socket that only receives has none.
    package static func isConnected(_ descriptor: Int32) -> Bool {
        // Nothing is written where there is no space for an address.
        var length: socklen_t = 0
        return getpeername(descriptor, nil, &length) == 0
    }

    /// Asks the kernel for the inode of the other end, as ss(8) does (sock_diag(7)), and never waits; `nil` if unknown.
    package static func inode(ofPeerOf inode: UInt32) -> UInt32? {
        // NETLINK_SOCK_DIAG is 4.
        let descriptor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), 4)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let request = request(for: inode)
        guard send(descriptor, request, request.count, 0) == request.count else { return nil }
        var answer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &answer, answer.count, Int32(MSG_DONTWAIT))
        return count > 0 ? peer(in: Array(answer.prefix(count)), of: inode) : nil
    }

    /// Returns a nlmsghdr with a unix_diag_req for one socket (linux/unix_diag.h).
    static func request(for inode: UInt32) -> [UInt8] {
        let (type, flags, sequence, port): (UInt16, UInt16, UInt32, UInt32) = (20, 1, 1, 0)
        let length = littleEndian(UInt32(40))
        let header = length + littleEndian(type) + littleEndian(flags) + littleEndian(sequence) + littleEndian(port)
        // All states; UDIAG_SHOW_PEER; no cookie.
        let (states, show): (UInt32, UInt32) = (.max, 4)
        let wanted = littleEndian(states) + littleEndian(inode) + littleEndian(show) + littleEndian(UInt64.max)
        return header + [UInt8(AF_UNIX), 0, 0, 0] + wanted
    }

    /// Returns the inode in the attribute UNIX_DIAG_PEER of a message of the kernel; `nil` if it is not there.
    static func peer(in message: [UInt8], of inode: UInt32) -> UInt32? {
        let (headers, length) = (16 + 16, Int(clamping: number(message, at: 0, bytes: 4) ?? 0))
        guard length <= message.count, length >= headers, number(message, at: 4, bytes: 2) == 20,
            number(message, at: 20, bytes: 4) == inode
        else { return nil }
        var at = headers
        while at + 4 <= length, let size = number(message, at: at, bytes: 2).map(Int.init), size >= 4 {
            // UNIX_DIAG_PEER is 2.
            if number(message, at: at + 2, bytes: 2) == 2, size >= 8, at + 8 <= length {
                return number(message, at: at + 4, bytes: 4)
            }
            at += (size + 3) & ~3
        }
        return nil
    }

    private static func number(_ message: [UInt8], at: Int, bytes count: Int) -> UInt32? {
        guard at + count <= message.count else { return nil }
        return message[at..<(at + count)].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
}
