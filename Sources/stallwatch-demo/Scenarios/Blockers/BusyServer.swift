import Dispatch
import Foundation
import Glibc

/// A listening socket whose queue of connections is full until a thread accepts them.
///
/// `@unchecked Sendable`: nothing changes after `init`.
final class BusyServer: @unchecked Sendable {
    /// The kind of address.
    enum Place {
        /// A name in the abstract namespace (unix(7)), which leaves no file.
        case unix
        /// A port of the loopback interface. A rejected client tries again after a second (tcp(7)).
        case tcp
    }

    /// A sockaddr of this kind.
    let address: UnsafeMutableRawPointer
    let addressLength: socklen_t
    /// A socket without a connection.
    let client: Int32
    private let listener: Int32
    private let first: Int32

    init(_ place: Place, for duration: Duration) {
        let bytes = place == .unix ? Self.unixAddress : Self.loopbackAddress
        let address = UnsafeMutableRawPointer.allocate(byteCount: bytes.count, alignment: 8)
        address.copyMemory(from: bytes, byteCount: bytes.count)
        let family = place == .unix ? AF_UNIX : AF_INET
        let sockets = (0..<3).map { _ in socket(family, Int32(SOCK_STREAM.rawValue), 0) }
        (self.address, addressLength) = (address, socklen_t(bytes.count))
        (listener, first, client) = (sockets[0], sockets[1], sockets[2])
        let socketAddress = address.assumingMemoryBound(to: sockaddr.self)
        bind(listener, socketAddress, addressLength)
        // A queue for one connection.
        listen(listener, 0)
        // Reads the port that the kernel chose.
        var length = addressLength
        getsockname(listener, socketAddress, &length)
        connect(first, socketAddress, addressLength)
        NamedThread.start("server") { [self] ready in
            ready()
            sleepTooLong(for: duration)
            for _ in 0..<2 { close(accept(listener, nil, nil)) }
        }
    }

    deinit {
        close(client)
        close(first)
        close(listener)
        address.deallocate()
    }

    private static var unixAddress: [UInt8] {
        family(AF_UNIX) + [0] + Array("stallwatch-demo-\(getpid())".utf8)
    }

    /// A sockaddr_in for any port of 127.0.0.1.
    private static var loopbackAddress: [UInt8] {
        family(AF_INET) + [0, 0, 127, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
    }

    /// In the machine's byte order, which is little-endian on both architectures.
    private static func family(_ family: Int32) -> [UInt8] { [UInt8(family), 0] }
}
