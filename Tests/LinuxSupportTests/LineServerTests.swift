import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

/// A program that closes all descriptors, such as a daemon, gives their numbers to its own files.
@Suite struct LineServerTests {
    @Test(.timeLimit(.minutes(1))) func `a connection of the app's socket is not accepted`() throws {
        let directory = try TemporaryDirectory()
        let server = try LineServer(path: directory.path("s")) { _ in .bytes([]) }
        let worker = try WorkerThread(name: "test-server") { server.run() }
        let theirs = try UnixSocket.listen(at: directory.path("theirs"), backlog: 4)
        try #require(dup2(theirs, server.listener) == server.listener)
        close(theirs)
        let client = try #require(Self.connect(to: directory.path("theirs")))
        // If the server waits, it holds its own socket, whose next connection wakes it.
        let waking = Self.connect(to: directory.path("s"))
        worker.join()
        let isTheirs = UnixSocket.wait(for: server.listener, POLLIN, until: monotonicNow() + 1_000_000_000)
        #expect(isTheirs, "the connection waits for the app")
        server.stop()
        for descriptor in [client, server.listener] + (waking.map { [$0] } ?? []) { close(descriptor) }
    }

    @Test(.timeLimit(.minutes(1))) func `a server that lost its socket ends, and closes no file of the app`() throws {
        let directory = try TemporaryDirectory()
        var server: LineServer? = try LineServer(path: directory.path("s")) { _ in .bytes([]) }
        let number = try #require(server?.listener)
        let theirs = open("/dev/null", O_RDWR | O_CLOEXEC)
        // Always ready, as a closed descriptor is for poll(2).
        try #require(dup2(theirs, number) == number)
        close(theirs)
        server?.run()
        server?.stop()
        server = nil
        #expect(fcntl(number, F_GETFD) >= 0)
        close(number)
    }

    @Test(.timeLimit(.minutes(1))) func `a server that lost its pipe can be stopped`() throws {
        let directory = try TemporaryDirectory()
        let server = try LineServer(path: directory.path("s")) { _ in .bytes([]) }
        let worker = try WorkerThread(name: "test-server") { server.run() }
        var theirs: [Int32] = [0, 0]
        try #require(pipe(&theirs) == 0)
        try #require(dup2(theirs[0], server.stopReader) >= 0 && dup2(theirs[1], server.stopWriter) >= 0)
        for end in theirs { close(end) }
        server.stop()
        worker.join()
        var polled = pollfd(fd: server.stopReader, events: Int16(POLLIN), revents: 0)
        #expect(poll(&polled, 1, 0) == 0, "nothing is written to the app's pipe")
        for number in [server.stopReader, server.stopWriter] { close(number) }
    }

    private static func connect(to path: String) -> Int32? {
        if case .connected(let descriptor) = UnixSocket.connect(to: path) { descriptor } else { nil }
    }
}
