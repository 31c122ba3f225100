import Dispatch
import FlyingFox
import FlyingSocks
import Glibc
import NIOCore
import NIOPosix
import Synchronization

let eventLoop = MultiThreadedEventLoopGroup.singleton.next()

@inline(never)
private func fillBuffers() {
    let end = DispatchTime.now() + stallLength
    var sum = 0
    while DispatchTime.now() < end {
        var buffer = ByteBufferAllocator().buffer(capacity: 16)
        for number in 0..<2_000 {
            buffer.writeInteger(number)
            buffer.writeString("key \(number)")
            buffer.writeRepeatingByte(7, count: 100)
        }
        while let number = buffer.readInteger(as: Int.self), buffer.readableBytes > 100 {
            sum &+= number
            buffer.moveReaderIndex(forwardBy: 100)
        }
    }
    use(sum)
    finish()
}

@inline(never)
private func waitForFuture() throws {
    let future = eventLoop.scheduleTask(in: .milliseconds(Int64(stallMicroseconds / 1_000))) { 7 }.futureResult
    use(try future.wait())
    finish()
}

@inline(never)
private func sleepOnEventLoop() {
    usleep(stallMicroseconds)
    finish()
}

@inline(never)
private func sortInCallback(_ seed: Int) -> Int {
    let end = DispatchTime.now() + stallLength
    var numbers = [seed]
    while DispatchTime.now() < end {
        numbers = (0..<20_000).map { ($0 &* 7_919) % 20_011 }
        numbers.sort()
    }
    finish()
    return numbers.count
}

@inline(never)
private func makeRoutes() {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        use(HTTPRoute("GET,POST /users/:id/friends/:friend?color=*&size=:size", headers: [.contentType: "text/*"]))
    }
    finish()
}

@inline(never)
private func answerSlowly() -> HTTPResponse {
    let end = DispatchTime.now() + stallLength
    var text = ""
    while DispatchTime.now() < end {
        text = (0..<1_000).map { String($0, radix: 16) }.joined(separator: ",")
    }
    finish()
    return HTTPResponse(statusCode: .ok, body: text.data(using: .utf8) ?? .init())
}

/// A server on a socket in /tmp whose handler runs on the main actor.
enum Server {
    private static let path = "/tmp/real-packages-\(getpid()).sock"

    static func start() {
        unlink(path)
        let server = HTTPServer(address: .unix(path: path), logger: .disabled)
        Task {
            await server.appendRoute("GET /slow") { @MainActor _ in answerSlowly() }
            try await server.run()
        }
    }

    /// Sends a request and reads the answer, on a thread of its own.
    static func request() {
        Thread.detach {
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    // The server may not listen yet.
                    while connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) != 0 { usleep(10_000) }
                }
            }
            let request = "GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            _ = request.withCString { write(descriptor, $0, strlen($0)) }
            var answer = [UInt8](repeating: 0, count: 4096)
            while read(descriptor, &answer, answer.count) > 0 {}
        }
    }

    static func remove() { unlink(path) }
}

let serverStalls = [
    LabeledStall("NIO: ByteBuffer", culprit: "fillBuffers", .computing) { fillBuffers() },
    LabeledStall("NIO: EventLoopFuture.wait", culprit: "waitForFuture", .waitingForLock, lock: "condition") {
        try waitForFuture()
    },
    LabeledStall("NIO: sleeps on the event loop", culprit: "sleepOnEventLoop", .sleeping, on: .nio) {
        sleepOnEventLoop()
    },
    LabeledStall("NIO: callback of a future", culprit: "sortInCallback", .computing, on: .nio) {
        _ = eventLoop.makeSucceededFuture(1).map { sortInCallback($0) }
    },
    LabeledStall("FlyingFox: makes routes", culprit: "makeRoutes", .computing) { makeRoutes() },
    LabeledStall("FlyingFox: handler on the main actor", culprit: "answerSlowly", .computing) { Server.request() },
]
