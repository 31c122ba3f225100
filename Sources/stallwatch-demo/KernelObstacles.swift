import Dispatch
import Foundation
import Glibc

// What the kernel lets a thread wait for. Each wait ends after a while.

/// A file that has no name and goes away when it is closed.
final class ScratchFile: Sendable {
    let descriptor: Int32
    /// In bytes.
    let size: Int

    /// All of it is on the disk.
    init(megabytes: Int) {
        var name = Array("./stallwatch-scratch-XXXXXX".utf8CString)
        descriptor = mkstemp(&name)
        unlink(name)
        size = megabytes << 20
        let block = [UInt8](repeating: 7, count: 1 << 20)
        for index in 0..<megabytes { pwrite(descriptor, block, block.count, index << 20) }
        fsync(descriptor)
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
        let readEnd = open(path, O_RDWR | O_CLOEXEC)
        self.readEnd = readEnd
        unlink(path)
        NamedThread.start("fifo-writer") { ready in
            ready()
            sleepTooLong(for: duration)
            write(readEnd, "!", 1)
        }
    }

    deinit { close(readEnd) }
}

/// A listening socket whose queue of connections is full until a thread accepts one.
///
/// `@unchecked Sendable`: nothing changes after `init`.
final class BusyServer: @unchecked Sendable {
    /// In the abstract namespace (unix(7)), which leaves no file behind.
    let address: UnsafeMutablePointer<sockaddr_un>
    let addressLength: socklen_t
    /// A socket that is not connected yet.
    let client: Int32
    private let listener: Int32
    private let first: Int32

    init(for duration: Duration) {
        let name = "stallwatch-demo-\(getpid())"
        var unix = sockaddr_un()
        unix.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &unix.sun_path) { path in
            for (index, byte) in name.utf8.enumerated() { path[index + 1] = byte }
        }
        address = .allocate(capacity: 1)
        address.initialize(to: unix)
        addressLength = socklen_t(MemoryLayout<sa_family_t>.size + 1 + name.utf8.count)
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        first = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let (first, length) = (first, addressLength)
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            bind(listener, address, length)
            listen(listener, 0)
            connect(first, address, length)
        }
        NamedThread.start("server") { ready in
            ready()
            sleepTooLong(for: duration)
            close(accept(listener, nil, nil))
        }
    }

    deinit {
        close(client)
        close(first)
        close(listener)
        address.deallocate()
    }
}

/// A UDP server on the loopback interface that never answers.
final class SilentServer: Sendable {
    private let server: Int32
    let client: Int32

    init() {
        server = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        client = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(server, address, length)
                getsockname(server, address, &length)
                Glibc.connect(client, address, length)
            }
        }
    }

    deinit {
        close(client)
        close(server)
    }

    func send() { Glibc.send(client, "?", 1, 0) }
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
