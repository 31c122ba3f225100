import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

/// A program that closes all descriptors, such as a daemon, gives their numbers to its own files.
@Suite struct LineServerTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test(.timeLimit(.minutes(10))) func `a connection of the app's socket is not accepted`() throws {
        let server = try LineServer(path: directory.path("s")) { _ in .bytes([]) }
        let worker = try WorkerThread(name: "test-server") { server.run() }
        let theirs = try UnixSocket.listen(at: directory.path("theirs"), backlog: 4).number
        try #require(dup2(theirs, server.listener.number) == server.listener.number)
        close(theirs)
        let client = try #require(Self.connect(to: directory.path("theirs")))
        // If the server waits, it holds its own socket, whose next connection wakes it.
        let waking = Self.connect(to: directory.path("s"))
        worker.join()
        let isTheirs = UnixSocket.wait(for: server.listener.number, POLLIN, until: endOfPatience)
        #expect(isTheirs, "the connection waits for the app")
        server.end()
        for descriptor in [client, server.listener.number] + (waking.map { [$0] } ?? []) { close(descriptor) }
    }

    @Test(.timeLimit(.minutes(10))) func `a server that lost its socket ends, and closes no file of the app`() throws {
        var server: LineServer? = try LineServer(path: directory.path("s")) { _ in .bytes([]) }
        let number = try #require(server?.listener.number)
        let theirs = open("/dev/null", O_RDWR | O_CLOEXEC)
        // Always ready, as a closed descriptor is for poll(2).
        try #require(dup2(theirs, number) == number)
        close(theirs)
        server?.run()
        server?.end()
        server = nil
        #expect(fcntl(number, F_GETFD) >= 0)
        close(number)
    }

    @Test(.timeLimit(.minutes(10))) func `a client's number that is the app's is neither read nor closed`() throws {
        let server = try LineServer(path: directory.path("s")) { _ in .bytes([]) }
        let worker = try WorkerThread(name: "test-server") { server.run() }
        let client = try #require(Self.connect(to: directory.path("s")))
        var found: Int32?
        _ = eventually {
            found = Self.accepted(at: server.path, besides: server.listener.number)
            return found != nil
        }
        let number = try #require(found)
        var theirs: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &theirs) == 0)
        try #require(dup2(theirs[0], number) == number && write(theirs[1], [7 as UInt8], 1) == 1)
        // The server waits for the number's earlier connection, too, until another one comes.
        let waking = Self.connect(to: directory.path("s"))
        server.end()
        worker.join()
        var byte: UInt8 = 0
        #expect(recv(number, &byte, 1, Int32(MSG_DONTWAIT)) == 1 && byte == 7)
        for number in [client, number] + theirs + (waking.map { [$0] } ?? []) { close(number) }
    }

    @Test func `an answer never goes to a connection of the app`() throws {
        var (own, theirs): ([Int32], [Int32]) = ([0, 0], [0, 0])
        let kind = Int32(SOCK_STREAM.rawValue)
        try #require(socketpair(AF_UNIX, kind, 0, &own) == 0 && socketpair(AF_UNIX, kind, 0, &theirs) == 0)
        var connection: LineConnection? = LineConnection(KeptDescriptor(own[0]))
        try #require(dup2(theirs[0], own[0]) == own[0])
        connection?.send([1])
        connection = nil
        var byte: UInt8 = 0
        #expect(recv(theirs[1], &byte, 1, Int32(MSG_DONTWAIT)) < 0)
        for number in own + theirs { #expect(close(number) == 0) }
    }

    /// Finds a descriptor of this process by the socket's path.
    private static func accepted(at path: String, besides other: Int32) -> Int32? {
        (directoryEntries("/proc/self/fd") ?? []).compactMap { Int32($0.name) }.first { number in
            var (address, length) = (sockaddr_un(), socklen_t(MemoryLayout<sockaddr_un>.size))
            let failure = withUnsafeMutablePointer(to: &address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) }
            }
            guard number != other, failure == 0, address.sun_family == sa_family_t(AF_UNIX) else { return false }
            return withUnsafeBytes(of: address.sun_path) { $0.prefix { $0 != 0 }.elementsEqual(path.utf8) }
        }
    }

    /// Also while another file system hangs.
    @Test(.timeLimit(.minutes(10))) func `a server that lost its pipe can be stopped`() throws {
        let server = try LineServer(path: directory.path("s")) { _ in .bytes([]) }
        let worker = try WorkerThread(name: "test-server") { server.run() }
        var theirs: [Int32] = [0, 0]
        try #require(pipe(&theirs) == 0)
        try #require(dup2(theirs[0], server.stopReader.number) >= 0 && dup2(theirs[1], server.stopWriter.number) >= 0)
        for end in theirs { close(end) }
        // Other suites of this process use the thread, too.
        let isOver = Semaphore()
        JobThread.files.add { isOver.wait() }
        server.end()
        worker.join()
        isOver.post()
        var polled = pollfd(fd: server.stopReader.number, events: Int16(POLLIN), revents: 0)
        #expect(poll(&polled, 1, 0) == 0, "nothing is written to the app's pipe")
        for number in [server.stopReader.number, server.stopWriter.number] { close(number) }
    }

    @Test func `the path of a socket need not be UTF-8`() throws {
        let name = pathText([0x61, 0xe9])
        let path = directory.path(name)
        let server = try LineServer(path: path) { _ in .bytes([]) }
        #expect(directoryEntries(directory.path)?.contains { $0.name == name } == true)
        let client = Self.connect(to: path)
        #expect(client != nil)
        if let client { close(client) }
        server.remove()
        #expect(FileStatus(path: path) == nil)
    }

    /// As after chroot(2): the path is another file's.
    @Test func `a socket is removed where it was made`() throws {
        let (before, after) = (directory.path("before"), directory.path("after"))
        try #require(mkdir(before, 0o700) == 0)
        let server = try LineServer(path: before + "/s") { _ in .bytes([]) }
        try #require(rename(before, after) == 0)
        try directory.write("before/s", "the program's")
        server.remove()
        #expect(FileStatus(path: before + "/s") != nil && FileStatus(path: after + "/s") == nil)
    }

    private static func connect(to path: String) -> Int32? {
        if case .connected(let descriptor) = UnixSocket.connect(to: path) { descriptor } else { nil }
    }
}

@Suite struct ServiceNotifierTests {
    @Test(arguments: [false, true]) func `a message is one datagram`(isAbstract: Bool) throws {
        let receiver = try DatagramReceiver(isAbstract: isAbstract)
        let notifier = try ServiceNotifier(socket: receiver.name)
        #expect(notifier.send("READY=1\nSTATUS=works") == nil)
        #expect(notifier.send("WATCHDOG=1") == nil)
        #expect(receiver.next() == "READY=1\nSTATUS=works")
        #expect(receiver.next() == "WATCHDOG=1")
        #expect(receiver.next() == nil)
    }

    /// As after chroot(2), or in another mount namespace.
    @Test func `a manager is reached although its path leads elsewhere`() throws {
        let receiver = try DatagramReceiver()
        let notifier = try ServiceNotifier(socket: receiver.name)
        try #require(unlink(receiver.name) == 0)
        #expect(notifier.send("WATCHDOG=1") == nil)
        #expect(receiver.next() == "WATCHDOG=1")
    }

    @Test func `a full queue is an error and no wait`() throws {
        let receiver = try DatagramReceiver()
        let notifier = try ServiceNotifier(socket: receiver.name)
        var sent = 0
        var failure: Int32?
        // The queue's length is net.unix.max_dgram_qlen, 10 or some hundred.
        while failure == nil, sent < 100_000 {
            failure = notifier.send("WATCHDOG=1")
            if failure == nil { sent += 1 }
        }
        #expect(failure == EAGAIN)
        for _ in 0..<sent { #expect(receiver.next() == "WATCHDOG=1") }
        #expect(notifier.send("READY=1") == nil)
        #expect(receiver.next() == "READY=1")
    }

    @Test func `a manager that is gone is an error and no signal`() throws {
        let directory = try TemporaryDirectory()
        let notifier = try ServiceNotifier(socket: directory.path("missing"))
        #expect(notifier.send("READY=1") == ENOENT)
    }

    @Test(arguments: ["", "@", "relative/path", "vsock:2:1", "/" + String(repeating: "x", count: 107)])
    func `an address of another kind is refused`(socket: String) {
        #expect(throws: SystemError.self) { try ServiceNotifier(socket: socket) }
    }

    @Test func `the longest path is 107 bytes`() throws {
        _ = try ServiceNotifier(socket: "/" + String(repeating: "x", count: 106))
        _ = try ServiceNotifier(socket: "@" + String(repeating: "x", count: 107))
    }

    @Test(
        arguments: [
            ("2000000", nil, 1_000_000_000), ("3", nil, 1_500), ("2000000", "4700", 1_000_000_000),
            ("2000000", "4701", nil), ("2000000", "", nil), ("0", nil, nil), ("-1", nil, nil), ("soon", nil, nil),
            ("18446744073709551615", nil, nil), (nil, nil, nil),
        ] as [(String?, String?, UInt64?)])
    func `the period is half of what the manager expects`(microseconds: String?, process: String?, period: UInt64?) {
        let found = ServiceNotifier.watchdogPeriod(microseconds: microseconds, process: process, own: 4_700)
        #expect(found == period)
    }

    @Test func `a worker that inherits the socket is not the service`() {
        #expect(ServiceNotifier.isMain([nil, nil], own: 4_700) && ServiceNotifier.isMain(["4700", nil], own: 4_700))
        #expect(!ServiceNotifier.isMain(["4700", nil], own: 4_701))
        #expect(!ServiceNotifier.isMain([nil, "4700"], own: 4_701))
    }

    @Test func `a status is one short line`() {
        #expect(ServiceNotifier.statusLine("a\nREADY=1\r\nb") == "a READY=1 b")
        let long = ServiceNotifier.statusLine(String(repeating: "ä", count: 600))
        #expect(long == String(repeating: "ä", count: 500))
    }
}

@Suite struct UnixSocketPeerTests {
    @Test func `only a link to a socket has a number`() {
        #expect(UnixSocketPeer.number(inLink: "socket:[4711]") == "4711")
        #expect(UnixSocketPeer.number(inLink: "pipe:[4711]") == nil)
    }

    private func message(type: UInt8 = 20, inode: UInt8 = 5, length: UInt8 = 48, attributes: [UInt8]) -> [UInt8] {
        [length, 0, 0, 0, type, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0] + [1, 1, 1, 0, inode, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]
            + attributes
    }

    /// UNIX_DIAG_SHUTDOWN with a byte and padding, then UNIX_DIAG_PEER.
    private let attributes: [UInt8] = [5, 0, 6, 0, 0, 0, 0, 0, 8, 0, 2, 0, 0x39, 0x30, 0, 0]

    @Test func `the peer is the attribute of that number`() {
        #expect(UnixSocketPeer.peer(in: message(attributes: attributes), of: 5) == 12345)
        #expect(UnixSocketPeer.peer(in: message(length: 40, attributes: attributes), of: 5) == nil)
    }

    @Test func `another answer has no peer`() {
        #expect(UnixSocketPeer.peer(in: message(type: 2, attributes: attributes), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: message(inode: 6, attributes: attributes), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: message(length: 60, attributes: attributes), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: message(length: 8, attributes: attributes), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: message(attributes: [0, 0, 2, 0] + attributes.dropFirst(4)), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: [], of: 5) == nil)
        for count in 0..<48 {
            let cut = Array(message(attributes: attributes).prefix(count))
            #expect(UnixSocketPeer.peer(in: cut, of: 5) == nil)
        }
    }

    @Test func `the ends of a socket pair are each other's peers`() throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        #expect(UnixSocketPeer.process(of: ends[0]) == getpid())
        let inodes = ends.compactMap { readLink("/proc/self/fd/\($0)").flatMap { UInt32($0.dropFirst(8).dropLast()) } }
        let peer = UnixSocketPeer.inode(ofPeerOf: inodes[0])
        #expect(peer == nil || peer == inodes[1], "the kernel may lack unix_diag")
    }

    @Test func `other descriptors have no peer`() {
        let single = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let inet = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer {
            close(single)
            close(inet)
        }
        #expect(UnixSocketPeer.process(of: single) == nil)
        #expect(UnixSocketPeer.process(of: inet) == nil)
        #expect(!UnixSocketPeer.isUnix(inet) && UnixSocketPeer.isUnix(single))
        #expect(UnixSocketPeer.process(of: 1_000_000) == nil)
    }
}
