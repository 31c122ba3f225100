import Foundation
import Glibc
import LinuxSupport
import StallReports
import TestSupport
import Testing

/// The tool asks processes that are stuck.
@Suite struct ControlTests {
    private let directory = TemporaryDirectory.ofTest()

    private func loops(of host: TestHost) throws -> [String: LoopStatistics] {
        let text = try Tool.run(["state", "\(host.pid)", "--json"])
        let loops = try #require(ControlAnswer(jsonData: Array(text.utf8))?.loops)
        return Dictionary(uniqueKeysWithValues: loops.map { ($0.label, $0) })
    }

    private func stacks(of host: TestHost) throws -> StallReport {
        try StallReport(jsonData: Array(Tool.run(["stacks", "\(host.pid)", "--json"]).utf8))
    }

    private func waitForStall(of loop: String, in host: TestHost) -> Bool {
        eventually(every: 100) { (try? loops(of: host)[loop])?.isStalled ?? false }
    }

    @Test func `a deadlocked main loop is shown with its cycle`() throws {
        let host = try TestHost.control("deadlock", in: directory)
        #expect(waitForStall(of: "main", in: host))
        let report = try stacks(of: host)
        let lock = try #require(report.cause?.lock)
        #expect(lock.isDeadlock)
        #expect(lock.owners.map(\.thread.name) == ["other-side", "stallwatch-test"])
        let text = try Tool.run(["stacks", "\(host.pid)"])
        #expect(text.contains("Deadlock\n") && text.contains("\"other-side\""), "\(text)")
        #expect(try Tool.run(["state", "\(host.pid)"]).contains("stalled for"))
        #expect(try Tool.run(["ps"]).contains("\(host.pid)  "))
        #expect(try Tool.run(["doctor", "\(host.pid)"]).contains("\nCost in "))
    }

    /// A busy machine may disturb single proofs.
    @Test func `the monitor of a deadlocked process proves itself`() throws {
        let host = try TestHost.control("deadlock", in: directory)
        #expect(waitForStall(of: "main", in: host))
        let before = try loops(of: host)
        var text = ""
        let isWhole = eventually(every: 100) {
            let output = try? Tool.shell("$TOOL doctor \(host.pid) --prove")
            text = output?.text ?? ""
            return output?.status == 0
        }
        #expect(isWhole && text.contains("\nProved by stalls of the monitor's own"), "\(text)")
        // On a busy machine the pool may stall by itself.
        let after = try loops(of: host)
        #expect(after.keys == before.keys && after["main"]?.stalls == before["main"]?.stalls)
    }

    @Test func `a starved pool does not delay the answer`() throws {
        let host = try TestHost.control("pool", in: directory)
        #expect(waitForStall(of: "tasks", in: host))
        #expect(try loops(of: host)["main"]?.currentTurn == nil)
        // A look has little time for other threads.
        let isShown = eventually {
            guard let report = try? stacks(of: host) else { return false }
            return (report.otherThreads ?? []).compactMap(\.stack).flatMap { report.stacks[$0] }
                .compactMap { report.frames[$0].function }.contains { $0.contains("sleepOnThePool") }
        }
        #expect(isShown)
    }

    @Test func `a spinning main loop is shown with its function`() throws {
        let host = try TestHost.control("spin", in: directory)
        #expect(waitForStall(of: "main", in: host))
        let report = try stacks(of: host)
        let functions = report.samples.compactMap(\.stack).flatMap { report.stacks[$0] }
            .compactMap { report.frames[$0].function }
        #expect(functions.contains { $0.contains("spinForTheControlSocket") }, "\(functions)")
    }

    @Test func `a process that cannot be asked is one sentence`() throws {
        let host = try TestHost(["stalls", directory.path("reports"), "90000", "1", "60000", "60000"])
        _ = host.firstLine()
        let off = try Tool.shell("$TOOL state \(host.pid)")
        #expect(off.status == 1)
        #expect(off.text.contains("has no control socket: set control = .socket(directory:)"), "\(off.text)")
        let proof = try Tool.shell("$TOOL doctor --prove \(host.pid)")
        #expect(proof.status == 1 && proof.text == off.text, "\(proof.text)")
        // Not the tests' own process: other tests in it start monitors.
        let sleeper = Command(program: "/bin/sleep", arguments: ["600"]).process()
        try sleeper.run()
        defer { kill(sleeper.processIdentifier, SIGKILL) }
        let unmonitored = try Tool.shell("$TOOL stacks \(sleeper.processIdentifier)")
        #expect(unmonitored.status == 1 && unmonitored.text.contains("is not monitored"), "\(unmonitored)")
        let gone = try Tool.shell("$TOOL state 2147483647")
        #expect(gone.status == 1 && gone.text.contains("There is no process 2147483647."), "\(gone)")
    }

    @Test func `a monitor that is paused, stopped or of another version is one sentence`() throws {
        let paused = try TestHost.control("paused", in: directory)
        let refused = try Tool.shell("$TOOL doctor --prove \(paused.pid)")
        #expect(refused.status == 75 && refused.text.contains("the monitor is paused: end the pause first."))
        let client = try #require(Self.connect(directory.controlSocket(of: paused.pid)))
        defer { close(client) }
        UnixSocket.send(Array("stallwatch 2 proof\n".utf8), to: client, until: endOfPatience)
        let answer = UnixSocket.receive(from: client, limit: ControlAnswer.maximumBytes, until: endOfPatience)
        let decoded = answer.flatMap { ControlAnswer(jsonData: $0) }
        #expect(decoded?.isUnknownRequest == true)
        #expect(decoded?.error == "the monitor's protocol has version 1: use the tool of its version")
        let stopped = try TestHost.control("stopped", in: directory)
        let unmonitored = try Tool.shell("$TOOL doctor --prove \(stopped.pid)")
        #expect(unmonitored.status == 1)
        #expect(unmonitored.text.contains("Process \(stopped.pid) is not monitored: "), "\(unmonitored.text)")
        // Their programs end with them.
        withExtendedLifetime((paused, stopped)) {}
    }

    /// Half messages, floods and silence, from 1,000 connections.
    @Test func `hostile connections cost neither memory nor time`() throws {
        let host = try TestHost.control("wait", in: directory)
        let path = directory.controlSocket(of: host.pid)
        let request = Array(ControlRequest.state.line.utf8)
        // The first answers load what answers need.
        for _ in 0..<20 { #expect(eventually { Self.exchange(request, path) != nil }) }
        let (memory, sockets, before) = (Self.memory(host.pid), Self.sockets(host.pid), Self.time(request, path))
        var held: [Int32] = []
        for index in 0..<1_000 {
            let descriptor = try #require(Self.connect(path))
            let bytes: [UInt8] =
                switch index % 4 {
                case 0: Array("stallwatch 1 st".utf8)
                case 1: [UInt8](repeating: 0, count: 100_000)
                case 2: Array("\n".utf8)
                default: []
                }
            UnixSocket.send(bytes, to: descriptor, until: monotonicNow() &+ 1_000_000)
            held.append(descriptor)
            if held.count > 100 { close(held.removeFirst()) }
        }
        #expect(eventually { Self.exchange(request, path) != nil })
        let isCounted = eventually {
            if Self.sockets(host.pid) > sockets { return true }
            // The monitor closes one that has been silent for a second.
            if let descriptor = Self.connect(path) { held.append(descriptor) }
            if held.count > 100 { close(held.removeFirst()) }
            return false
        }
        #expect(isCounted, "the count at the end shows nothing")
        let during = Self.time(request, path)
        for descriptor in held { close(descriptor) }
        // Other files are not counted: Dispatch and the watchdog open theirs when they first need them.
        #expect(eventually { Self.sockets(host.pid) == sockets }, "\(sockets) before, \(Self.sockets(host.pid)) after")
        let after = Self.memory(host.pid)
        // malloc may keep an arena more for threads that met on a busy machine: 1.4 MiB once. A page for each
        // connection would be 4 MB, and what the floods sent 25.
        #expect(after - memory < 1_000 * 4, "\(memory) KiB before, \(after) after")
        #expect(during < before + 500_000_000, "\(before) ns before, \(during) beside silent connections")
        print("hostile: sockets \(sockets), memory \(memory) -> \(after) KiB, answer \(before) -> \(during) ns")
    }

    @Test func `only its user may open the socket`() throws {
        let host = try TestHost.control("wait", in: directory)
        let path = directory.controlSocket(of: host.pid)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
    }

    /// Root may always connect, so the process and the clients are three other users'.
    @Test(.enabled(if: geteuid() == 0, "needs root, to become other users"))
    func `another user gets no answer`() throws {
        #expect(chmod(directory.path, 0o777) == 0)
        // Copies, because the build's directory may be closed to other users, as in root's home.
        let program = try directory.program("host", from: Command.product("stallwatch-test-host"))
        let tool = try directory.program("tool", from: Command.product("stallwatch"))
        let host = try TestHost(["control", directory.path, "wait"], wrapper: Self.user(65_533), program: program)
        _ = host.firstLine()
        let path = directory.controlSocket(of: host.pid)
        // The kernel refuses another user, and without the file's permissions the monitor does.
        #expect(try Self.connect(to: path, as: 65_532) == "PermissionError")
        #expect(chmod(path, 0o666) == 0)
        #expect(try Self.connect(to: path, as: 65_532) == "no answer")
        #expect(try Self.connect(to: path, as: 65_533) == "an answer")
        #expect(try Tool.run(["state", "\(host.pid)"]).contains("main"))
        let refused = try Tool.shell("\(Self.user(65_532).joined(separator: " ")) \(tool) state \(host.pid)")
        #expect(refused.status == 77)
        #expect(
            refused.text.contains("belongs to user 65533: run the tool as that user or as root."), "\(refused.text)")
    }

    private static func user(_ id: Int) -> [String] {
        ["setpriv", "--reuid=\(id)", "--regid=\(id)", "--clear-groups"]
    }

    private static func connect(to path: String, as user: Int) throws -> String {
        let script = """
            import socket, sys
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(300)
            try:
                connection.connect(sys.argv[1])
                connection.sendall(b"stallwatch 1 state\\n")
                print("an answer" if b"loops" in connection.recv(65536) else "no answer")
            except (ConnectionResetError, BrokenPipeError):
                print("no answer")
            except PermissionError:
                print("PermissionError")
            """
        let arguments = Self.user(user) + ["/usr/bin/python3", "-c", script, path]
        return try Command(program: "/usr/bin/env", arguments: arguments).succeed().split(separator: "\n").joined()
    }

    /// Connects, also when the backlog is full at first.
    private static func connect(_ path: String) -> Int32? {
        var descriptor: Int32?
        _ = eventually {
            if case .connected(let connected) = UnixSocket.connect(to: path) { descriptor = connected }
            return descriptor != nil
        }
        return descriptor
    }

    private static func exchange(_ request: [UInt8], _ path: String) -> [UInt8]? {
        guard case .connected(let descriptor) = UnixSocket.connect(to: path) else { return nil }
        defer { close(descriptor) }
        let deadline = monotonicNow() &+ 60_000_000_000
        guard UnixSocket.send(request, to: descriptor, until: deadline) else { return nil }
        let answer = UnixSocket.receive(from: descriptor, limit: ControlAnswer.maximumBytes, until: deadline)
        return answer.flatMap { ControlAnswer(jsonData: $0)?.loops == nil ? nil : $0 }
    }

    /// The median time of an answer, in nanoseconds.
    private static func time(_ request: [UInt8], _ path: String) -> UInt64 {
        let times = (0..<21).map { _ in
            let began = monotonicNow()
            _ = exchange(request, path)
            return monotonicNow() - began
        }
        return times.sorted()[10]
    }

    /// The resident memory of a process that no file backs, in KiB.
    private static func memory(_ pid: Int32) -> Int {
        let status = readSmallFile("/proc/\(pid)/status") ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return line.flatMap { Int($0.split(separator: " ")[safe: 1] ?? "") } ?? 0
    }

    private static func sockets(_ pid: Int32) -> Int {
        (directoryEntries("/proc/\(pid)/fd") ?? []).count {
            readLink("/proc/\(pid)/fd/\($0.name)")?.hasPrefix("socket:") ?? false
        }
    }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}
