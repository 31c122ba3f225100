import LinuxSupport
import Glibc

/// Formats socket addresses.
enum SocketName {
    /// Describes the peer of an open socket, or its own address if it has no peer.
    static func peer(of descriptor: Int32) -> String? {
        address(of: descriptor, by: getpeername).map { "socket to \($0)" }
            ?? address(of: descriptor, by: getsockname).map { "socket at \($0)" }
    }

    private static func address(
        of descriptor: Int32,
        by ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> String? {
        var bytes = [UInt8](repeating: 0, count: MemoryLayout<sockaddr_storage>.size)
        var length = socklen_t(bytes.count)
        let status = bytes.withUnsafeMutableBytes { buffer -> Int32 in
            // A sockaddr_storage has room for every address, and the kernel writes at most `length` bytes.
            guard let address = buffer.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return -1 }
            return ask(descriptor, address, &length)
        }
        guard status == 0 else { return nil }
        return decode(Array(bytes.prefix(Int(length))))
    }

    /// Formats a struct sockaddr: `127.0.0.1:80`, `[::1]:80`, a path.
    ///
    /// Returns `nil` for other families and for unnamed sockets.
    static func decode(_ bytes: [UInt8]) -> String? {
        guard bytes.count > 2 else { return nil }
        // The family is in host order, little-endian on both architectures; the port is in network order.
        let family = Int32(bytes[0]) | Int32(bytes[1]) << 8
        let port = bytes.count >= 4 ? UInt16(bytes[2]) << 8 | UInt16(bytes[3]) : 0
        switch family {
        case AF_INET where bytes.count >= 8:
            return bytes[4..<8].map(String.init).joined(separator: ".") + ":\(port)"
        case AF_INET6 where bytes.count >= 24:
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            guard inet_ntop(AF_INET6, Array(bytes[8..<24]), &text, socklen_t(text.count)) != nil else { return nil }
            let address = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return "[\(address)]:\(port)"
        case AF_UNIX:
            // A leading zero byte means the abstract namespace, written as @ like in ss(8).
            let name = bytes[2...]
            let isAbstract = name.first == 0
            let text = (isAbstract ? name.dropFirst() : name).prefix { $0 != 0 }
            guard !text.isEmpty else { return nil }
            return (isAbstract ? "@" : "") + String(decoding: text, as: UTF8.self)
        default:
            return nil
        }
    }
}
