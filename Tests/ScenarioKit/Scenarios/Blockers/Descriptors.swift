import CStalls
import Foundation
import Glibc

final class BytePipe: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32

    /// A pipe, or a FIFO that is made in a directory.
    init(fifoIn directory: String? = nil) {
        var ends: [Int32] = [-1, -1]
        if let directory {
            let path = "\(directory)/stallwatch-fifo-\(getpid())"
            mkfifo(path, 0o600)
            // One end that does both: opening one of two would wait for the other.
            ends[0] = open(path, O_RDWR | O_CLOEXEC)
            ends[1] = dup(ends[0])
            unlink(path)
        } else {
            // If this fails because no descriptor is left, the read fails at once, and the scenario's result is `missed`.
            pipe(&ends)
        }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    /// A pipe to which a thread writes one byte after some time.
    convenience init(fifoIn directory: String? = nil, emptyFor duration: Duration) {
        self.init(fifoIn: directory)
        // The thread retains this object, so the ends stay open until the byte is written.
        NamedThread.start("pipe-writer", after: duration) { [self] in writeOne() }
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    func writeOne() { _ = write(writeEnd, "!", 1) }

    func readOne() {
        var byte: UInt8 = 0
        _ = read(readEnd, &byte, 1)
    }
}

/// A file without a name that disappears when it is closed.
final class ScratchFile: Sendable {
    let descriptor: Int32
    let size: Int

    /// Makes the file in a directory with room and a disk behind it (tmpfs(5)), and flushes it, unless `isDirty`.
    init(megabytes: Int, isDirty: Bool = false, in directory: String) throws(NotAvailable) {
        var name = Array("\(directory)/stallwatch-scratch-XXXXXX".utf8CString)
        descriptor = mkstemp(&name)
        unlink(name)
        size = megabytes << 20
        let block = [UInt8](repeating: 7, count: 1 << 20)
        let offsets = (0..<megabytes).map { $0 << 20 }
        guard !stalls_is_in_memory(descriptor),
            offsets.allSatisfy({ pwrite(descriptor, block, block.count, $0) == block.count })
        else {
            Glibc.close(descriptor)
            throw NotAvailable(reason: "the directory of the reports is not on a disk with room")
        }
        if !isDirty { fsync(descriptor) }
    }

    /// Closes the file, once, after its last use.
    func close() { _ = Glibc.close(descriptor) }
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

/// A listening socket whose queue of connections is full until a thread accepts them.
///
/// `@unchecked Sendable`: nothing changes after `init`.
final class BusyServer: @unchecked Sendable {
    enum Place {
        /// A name in the abstract namespace (unix(7)), which leaves no file.
        case unix
        /// A port of the loopback interface. A rejected client tries again after a second (tcp(7)).
        case tcp
        /// A port of another of the machine's addresses, in the network's byte order.
        case host([UInt8])
    }

    let address: UnsafeMutableRawPointer
    let addressLength: socklen_t
    let client: Int32
    private let listener: Int32
    private let first: Int32

    init(_ place: Place, for duration: Duration) {
        let bytes =
            switch place {
            case .unix: Self.unixAddress
            case .tcp: Self.address([127, 0, 0, 1])
            case .host(let host): Self.address(host)
            }
        let address = UnsafeMutableRawPointer.allocate(byteCount: bytes.count, alignment: 8)
        address.copyMemory(from: bytes, byteCount: bytes.count)
        let sockets = (0..<3).map { _ in socket(Int32(bytes[0]), Int32(SOCK_STREAM.rawValue), 0) }
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
        NamedThread.start("server", after: duration) { [self] in
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
        family(AF_UNIX) + [0] + Array("stallwatch-scenarios-\(getpid())".utf8)
    }

    /// A sockaddr_in for any port of an IPv4 address.
    private static func address(_ host: [UInt8]) -> [UInt8] {
        family(AF_INET) + [0, 0] + host + [UInt8](repeating: 0, count: 8)
    }

    /// An IPv4 address of this machine that is no loopback one.
    static func hostAddress() throws(NotAvailable) -> [UInt8] {
        var list: UnsafeMutablePointer<ifaddrs>?
        getifaddrs(&list)
        defer { freeifaddrs(list) }
        var next = list
        while let interface = next?.pointee {
            next = interface.ifa_next
            guard let place = interface.ifa_addr, place.pointee.sa_family == AF_INET else { continue }
            let address = UnsafeRawPointer(place).loadUnaligned(fromByteOffset: 4, as: UInt32.self)
            let host = withUnsafeBytes(of: address) { [UInt8]($0) }
            if host[0] != 127 { return host }
        }
        throw NotAvailable(reason: "the machine has no network address but the loopback one")
    }

    /// In the machine's byte order, which is little-endian on both architectures.
    private static func family(_ family: Int32) -> [UInt8] { [UInt8(family), 0] }
}
