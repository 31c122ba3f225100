import Dispatch
import Foundation
import Glibc

// What the kernel lets a thread wait for. Each wait ends after a while.

/// A file that has no name and goes away when it is closed.
final class ScratchFile: Sendable {
    let descriptor: Int32
    /// In bytes.
    let size: Int

    /// All of it is on the disk, unless it is to stay in memory for now.
    init(megabytes: Int, isDirty: Bool = false) {
        var name = Array("./stallwatch-scratch-XXXXXX".utf8CString)
        descriptor = mkstemp(&name)
        unlink(name)
        size = megabytes << 20
        let block = [UInt8](repeating: 7, count: 1 << 20)
        for index in 0..<megabytes { pwrite(descriptor, block, block.count, index << 20) }
        if !isDirty { fsync(descriptor) }
    }

    /// Ends its life.
    ///
    /// To be called once, when nobody uses it any more.
    func close() { _ = Glibc.close(descriptor) }
}

/// A FIFO that a thread writes one byte to after a while.
final class EmptyFIFO: Sendable {
    let readEnd: Int32

    init(for duration: Duration) {
        let path = "./stallwatch-fifo-\(getpid())"
        mkfifo(path, 0o600)
        readEnd = open(path, O_RDWR | O_CLOEXEC)
        unlink(path)
        // Which keeps the FIFO open, also where nobody waits for the byte any more.
        NamedThread.start("fifo-writer") { [self] ready in
            ready()
            sleepTooLong(for: duration)
            write(readEnd, "!", 1)
        }
    }

    deinit { close(readEnd) }
}

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

/// A UDP server on the loopback interface that never answers.
final class SilentServer: Sendable {
    private let server: Int32
    let port: UInt16

    init() {
        let server = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(server, address, length)
                getsockname(server, address, &length)
            }
        }
        self.server = server
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(server) }
}

/// A file that another open file of this process has locked for a while.
final class HeldFileLock: Sendable {
    let descriptor: Int32

    init(for duration: Duration) {
        let path = "./stallwatch-lock-\(getpid())"
        let other = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        descriptor = open(path, O_RDWR | O_CLOEXEC)
        unlink(path)
        flock(other, LOCK_EX)
        NamedThread.start("file-holder") { ready in
            ready()
            sleepTooLong(for: duration)
            close(other)
        }
    }

    deinit { close(descriptor) }
}
