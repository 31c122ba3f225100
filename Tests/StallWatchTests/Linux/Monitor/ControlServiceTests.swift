import Glibc
import InMemoryLogging
import Logging
import StallReports
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct LatestStallsTests {
    @Test func `a stall that lasts stays, however many follow it`() throws {
        let latest = LatestStalls()
        for number in 0...(LatestStalls.limit + 5) {
            var report = try StallReport.literal()
            report.id = "\(number)"
            report.state = number == 0 ? .ongoing : .ended
            report.startedAt = Timestamp(microsecondsSince1970: Int64(number))
            latest.store(report)
        }
        #expect(latest.current.count == LatestStalls.limit)
        #expect(latest.current.last?.id == "0")
        #expect(latest.current.first?.id == "\(LatestStalls.limit + 5)")
    }
}

@Suite struct ControlServiceTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test func `a slow request delays no other client`() throws {
        let isAnswered = Semaphore()
        let service = try ControlService(directory: FixedDirectory(directory.path)) { _ in
            ControlAnswer(pid: 1, loops: [])
        } slowAnswer: { _ in
            isAnswered.wait(until: endOfPatience)
            return ControlAnswer(pid: 1)
        }
        defer {
            service.close()
            service.finish(until: endOfPatience)
        }
        let slow = try #require(send(.stacks))
        defer { close(slow) }
        for _ in 0..<3 { #expect(try #require(send(.state).flatMap(answer)).loops?.isEmpty == true) }
        let second = try #require(send(.stacks).flatMap(answer))
        #expect(second.error == "another client's stacks is not finished: try again when it is")
        isAnswered.post()
        let first = try #require(answer(slow))
        #expect(first.error == nil && first.loops == nil)
    }

    @Test(.timeLimit(.minutes(10))) func `the end of a monitor waits a bounded time for an answer`() throws {
        let gate = Semaphore()
        defer { gate.post() }
        let service = try ControlService(directory: FixedDirectory(directory.path)) { _ in
            ControlAnswer(pid: 1)
        } slowAnswer: { _ in
            gate.pass()
            return ControlAnswer(pid: 1)
        }
        let client = try #require(send(.stacks))
        defer { close(client) }
        // The request has arrived, as one behind it is refused.
        #expect(try #require(send(.stacks).flatMap(answer)).error != nil)
        service.close()
        service.finish(until: monotonicNow() + 20_000_000)
    }

    @Test func `a socket that is opened after the end of its monitor is removed`() throws {
        let (socket, mayOpen, path) = (ControlSocket(), Semaphore(), directory.path("s"))
        let thread = try WorkerThread(name: "control") {
            socket.serve(
                { () throws(SystemError) in
                    mayOpen.wait()
                    return try LineServer(path: path) { _ in .bytes([]) }
                }, { _ in })
        }
        try socket.waitUntilOpen(until: 0)
        socket.end()
        mayOpen.post()
        thread.join()
        #expect(directory.names.isEmpty)
    }

    @Test func `a socket that is refused too late is said to be missing`() throws {
        let (socket, mayOpen, refusals) = (ControlSocket(), Semaphore(), Collected<SystemError>())
        let thread = try WorkerThread(name: "control") {
            socket.serve(
                { () throws(SystemError) in
                    mayOpen.wait()
                    throw SystemError("the disk has gone", errno: EIO)
                }, { refusals.add($0) })
        }
        try socket.waitUntilOpen(until: 0)
        mayOpen.post()
        thread.join()
        #expect(refusals.all.map(\.errno) == [EIO])
    }

    /// In two containers with one directory both processes may have the id 1.
    @Test func `monitors with the same process id share a directory`() throws {
        let services = try (0..<2).map { _ in
            try ControlService(directory: FixedDirectory(directory.path)) { _ in
                ControlAnswer(pid: 1)
            } slowAnswer: { _ in
                ControlAnswer(pid: 1)
            }
        }
        #expect(directory.names.count == 2 && directory.names.allSatisfy(ControlRequest.isSocketName))
        for service in services {
            service.close()
            service.finish(until: endOfPatience)
        }
        #expect(directory.names.isEmpty)
    }

    /// As after chroot(2), where the path leads elsewhere by then.
    @Test func `a socket goes to the directory that the monitor opened`() throws {
        func sockets(_ name: String) -> Int {
            (directoryEntries(directory.path(name)) ?? []).count { ControlRequest.isSocketName($0.name) }
        }
        var configuration = StallMonitor.Configuration(outputs: [])
        configuration.control = .socket(directory: directory.path("a"))
        let monitor = try StallMonitor(configuration)
        try #require(rename(directory.path("a"), directory.path("b")) == 0)
        try #require(mkdir(directory.path("a"), 0o700) == 0)
        try monitor.start()
        #expect(sockets("a") == 0 && sockets("b") == 1)
        monitor.stop()
        #expect(eventually { sockets("b") == 0 })
    }

    @Test func `a directory that is removed before the start is made again`() throws {
        let place = FixedDirectory(directory.path("a"))
        try #require(mkdir(place.path, 0o700) == 0)
        _ = try place.descriptor()
        try #require(rmdir(place.path) == 0)
        let service = try ControlService(directory: place) { _ in
            ControlAnswer(pid: 1)
        } slowAnswer: { _ in
            ControlAnswer(pid: 1)
        }
        let names = (directoryEntries(place.path) ?? []).map(\.name)
        #expect(names.contains(where: ControlRequest.isSocketName))
        service.close()
        service.finish(until: endOfPatience)
    }

    /// In a directory that hosts share, a socket of another one refuses connections, too.
    @Test func `sockets of ended processes of this host are removed after a minute`() throws {
        let (own, other) = ("01234567-89ab", "f1234567-89ab")
        let names = [own, own, other].map { ControlRequest.socketName(ofProcess: 1, boot: $0) }
        #expect(names.allSatisfy { ControlRequest.isSocketName($0) })
        let living = try UnixSocket.listen(at: directory.path(names[0]), backlog: 1)
        defer { living.close() }
        for name in [names[1], names[2], "other.socket"] {
            try UnixSocket.listen(at: directory.path(name), backlog: 1).close()
        }
        func removeLeftovers() {
            UnixSocket.removeLeftovers(in: directory.path) { ControlRequest.isSocket($0, ofBoot: own) }
        }
        removeLeftovers()
        #expect(directory.names.count == 4, "too young")
        let times = [timespec](repeating: timespec(tv_sec: time(nil) - 120, tv_nsec: 0), count: 2)
        for name in directory.names { try #require(utimensat(AT_FDCWD, directory.path(name), times, 0) == 0) }
        removeLeftovers()
        #expect(directory.names == [names[0], names[2], "other.socket"].sorted())
    }

    /// The app is not to lose its monitor for the want of a feature.
    @Test func `a monitor without its control socket starts, and says so`() throws {
        let log = InMemoryLogHandler()
        let file = try directory.write("file", "")
        var configuration = StallMonitor.Configuration(outputs: [.log(Logger(label: "test") { _ in log })])
        configuration.control = .socket(directory: file + "/below")
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        // A stop does not wait for the log for long.
        #expect(eventually { log.entries.contains { "\($0.message)".contains("runs without its control socket") } })
        monitor.stop()
    }

    private func send(_ request: ControlRequest) -> Int32? {
        let path = directory.controlSocket(of: getpid())
        guard case .connected(let descriptor) = UnixSocket.connect(to: path) else { return nil }
        UnixSocket.send(Array(request.line.utf8), to: descriptor, until: endOfPatience)
        return descriptor
    }

    private func answer(_ descriptor: Int32) -> ControlAnswer? {
        let deadline = endOfPatience
        let bytes = UnixSocket.receive(from: descriptor, limit: ControlAnswer.maximumBytes, until: deadline)
        return bytes.flatMap { ControlAnswer(jsonData: $0) }
    }
}
