import Glibc

/// Sends requests over loopback, all at once.
enum Client {
    /// The trace of a request, as 32 hexadecimal digits.
    static func trace(_ number: Int, round: Int) -> String { digits(round * 1_000 + number + 1, 32) }
    /// The span of a request, as 16 hexadecimal digits.
    static func span(_ number: Int, round: Int) -> String { digits(round * 1_000 + number + 1, 16) }

    private static func digits(_ value: Int, _ count: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: count - text.count) + text
    }

    /// Opens a connection for each request, sends all requests, and waits for all answers.
    ///
    /// The requests have paths of their own unless `path` is given.
    ///
    /// - Returns: The number of answers.
    static func send(_ count: Int, round: Int, to port: Int, path: String? = nil) -> Int {
        let connections = (0..<count).map { _ in connect(to: port) }
        for (number, connection) in connections.enumerated() {
            let request = """
                GET \(path ?? "/item/\(number)") HTTP/1.1\r
                host: localhost\r
                connection: close\r
                traceparent: 00-\(trace(number, round: round))-\(span(number, round: round))-01\r
                \r

                """
            _ = Array(request.utf8).withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
        }
        return connections.count { connection in
            defer { close(connection) }
            return withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 1) { buffer in
                var bytes = 0
                while case let got = read(connection, buffer.baseAddress, buffer.count), got > 0 { bytes += got }
                return bytes > 0
            }
        }
    }

    private static func connect(to port: Int) -> Int32 {
        let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        // The answer may not come if the server has failed.
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        // The two types of addresses have the same beginning.
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(connection, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if status != 0 { perror("connect") }
        return connection
    }
}
