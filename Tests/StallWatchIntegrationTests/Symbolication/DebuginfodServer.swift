import Foundation
import Glibc
import TestSupport
import Testing

/// Debian's debuginfod on the loopback address, serving the files of one directory.
final class DebuginfodServer {
    private let process: Process
    private let port: UInt16

    var url: String { "http://127.0.0.1:\(port)" }

    init(of files: String, in directory: TemporaryDirectory) throws {
        port = try LoopbackSocket().port
        process = Command(
            program: try #require(Command.find("debuginfod")),
            arguments: [
                "--scan-file-dir", "--database=:memory:", "--port=\(port)", "--rescan-time=0", "--groom-time=0",
                "--concurrency=1", files,
            ],
            // Before elfutils 0.190, debuginfod has no option for the address to listen on.
            environment: ["LD_PRELOAD": try Preload.loopback.make(in: directory), "TMPDIR": directory.path("")]
        ).process()
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run(atMost: Process.timeout)
    }

    /// Waits up to 30 seconds until the server has found the debug file of that build ID.
    func waits(for buildID: String) throws -> Bool {
        for _ in 0..<300 {
            if let socket = try? LoopbackSocket(connectedTo: port),
                socket.answer(to: "GET /buildid/\(buildID)/debuginfo HTTP/1.0\r\n\r\n").hasPrefix("HTTP/1.1 200 ")
            {
                return true
            }
            usleep(100_000)
        }
        return false
    }

    /// Ends the server and waits for its end.
    func end() {
        process.kill()
        process.waitUntilExit()
    }
}

/// A server that accepts connections and never answers.
final class SilentServer {
    private let socket: LoopbackSocket

    var url: String { "http://127.0.0.1:\(socket.port)" }

    init() throws {
        socket = try LoopbackSocket()
        guard listen(socket.descriptor, 16) == 0 else { throw Command.Failure(description: "listen: \(errno)") }
    }

    /// Whether a client has connected.
    var wasAsked: Bool {
        var poll = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&poll, 1, 0) == 1
    }
}

/// A TCP socket on the loopback address; closed when this object is released.
private final class LoopbackSocket {
    let descriptor: Int32
    let port: UInt16

    /// Creates a listening socket at a free port.
    init() throws { (descriptor, port) = try Self.make(0, Glibc.bind) }

    init(connectedTo port: UInt16) throws { (descriptor, self.port) = try Self.make(port, Glibc.connect) }

    deinit { close(descriptor) }

    /// Sends a request and returns the first piece of the answer that arrives within 5 seconds.
    func answer(to request: String) -> String {
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let bytes = Array(request.utf8)
        var answer = [UInt8](repeating: 0, count: 4096)
        guard send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return "" }
        let count = recv(descriptor, &answer, answer.count, 0)
        return String(decoding: answer.prefix(max(count, 0)), as: UTF8.self)
    }

    private static func make(
        _ port: UInt16, _ use: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws -> (Int32, UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            // A sockaddr_in may be passed as a sockaddr (ip(7)).
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let status = use(descriptor, address, length)
                return status == 0 ? getsockname(descriptor, address, &length) : status
            }
        }
        guard status == 0 else {
            let reason = errno
            close(descriptor)
            throw Command.Failure(description: "a loopback socket: \(String(cString: strerror(reason)))")
        }
        // The own port of a connecting socket is not needed.
        return (descriptor, port == 0 ? UInt16(bigEndian: address.sin_port) : port)
    }
}
