import Dispatch
import Foundation
import Glibc

/// A listening socket whose queue of connections is full until a thread accepts them.
///
/// `@unchecked Sendable`: nothing changes after `init`.
final class BusyServer: @unchecked Sendable {
    /// Where it listens.
    enum Place {
        /// In the abstract namespace (unix(7)), which leaves no file behind.
        case unix
        /// On a port of the loopback interface, where a client that is turned away tries again after a second (tcp(7)).
        case tcp
    }

    /// Points to a sockaddr of the place's kind.
    let address: UnsafeMutableRawPointer
    let addressLength: socklen_t
    /// A socket that is not connected yet.
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
        // Room for one.
        listen(listener, 0)
        // The port that it was given.
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

    /// A struct sockaddr_in: any port of 127.0.0.1.
    private static var loopbackAddress: [UInt8] {
        family(AF_INET) + [0, 0, 127, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
    }

    /// In the machine's order, which is little-endian on both architectures.
    private static func family(_ family: Int32) -> [UInt8] { [UInt8(family), 0] }
}
