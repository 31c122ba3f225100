import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct MonitorLockTests {
    private let scratch = TemporaryDirectory.ofTest()
    private var directory: FixedDirectory { FixedDirectory(scratch.path) }
    /// A process that is not this one.
    private let other = ProcessIdentity(pid: 1, startTicks: 7, pidNamespace: "pid:[4026532222]")

    // MARK: Whether a process is gone

    private static let day = MonitorLock.longestSilence
    private static let boots = (own: "5c9d0e2a-0001", other: "5c9d0e2a-0002")

    private struct Case: CustomTestStringConvertible {
        var testDescription: String
        var boot = MonitorLockTests.boots.own
        var host = "web-3"
        var isAlive: Bool?
        var lock = MonitorLock.State.unknown
        var silence: UInt64 = 0
        var isGone: Bool
    }

    private static let cases = [
        Case(testDescription: "seen running", isAlive: true, silence: 2 * day, isGone: false),
        Case(testDescription: "seen running, and its lock was lost", isAlive: true, lock: .free, isGone: false),
        Case(testDescription: "not running any more", isAlive: false, isGone: true),
        Case(testDescription: "in another namespace, with its lock", lock: .held, silence: 2 * day, isGone: false),
        Case(testDescription: "in another namespace, without its lock", lock: .free, isGone: true),
        Case(
            testDescription: "in another container, without its lock", host: "9f2c41d07a3b", lock: .free, isGone: true),
        Case(testDescription: "in another namespace, where there are no locks", silence: day - 1, isGone: false),
        Case(testDescription: "the same, a day later", silence: day, isGone: true),
        Case(testDescription: "of an earlier boot", boot: boots.other, isGone: true),
        Case(testDescription: "on another host of the same name", boot: boots.other, lock: .held, isGone: false),
        Case(testDescription: "on another host", boot: boots.other, host: "web-4", lock: .free, isGone: false),
        Case(
            testDescription: "on another host, a day later", boot: boots.other, host: "web-4", silence: day,
            isGone: true),
        Case(testDescription: "of an unknown boot", boot: "", lock: .free, isGone: false),
    ]

    @Test(arguments: cases) private func `whether a process is gone`(_ test: Case) {
        let own = ProcessIdentity(pid: 1, startTicks: 5, pidNamespace: "1", bootID: Self.boots.own, host: "web-3")
        let process = ProcessIdentity(pid: 1, startTicks: 7, pidNamespace: "2", bootID: test.boot, host: test.host)
        #expect(
            MonitorLock.isGone(process, seenFrom: own, isAlive: test.isAlive, lock: test.lock, silence: test.silence)
                == test.isGone)
    }

    @Test func `an unknown process is gone after a day`() {
        for silence in [0, Self.day] {
            let isGone = MonitorLock.isGone(nil, seenFrom: other, isAlive: nil, lock: .unknown, silence: silence)
            #expect(isGone == (silence > 0))
        }
    }

    // MARK: The lock

    private func state() -> MonitorLock.State {
        MonitorLock.Names(among: scratch.names).state(of: other, in: directory)
    }

    /// Starts a process that holds the lock of `other`, and forks a child that lives on after its end.
    private func holder() throws -> (process: Process, input: Pipe) {
        let script = """
            import fcntl, os, sys
            file = open(sys.argv[1], "w")
            fcntl.lockf(file, fcntl.LOCK_EX)
            if os.fork() != 0:
                print("held", flush=True)
            sys.stdin.read()
            """
        let name = ReportDirectory.temporaryName(for: MonitorLock.fileName, of: other)
        let (input, output) = (Pipe(), Pipe())
        let process = Command(program: "/usr/bin/env", arguments: ["python3", "-c", script, scratch.path(name)])
            .process()
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run(atMost: Process.timeout)
        #expect(try output.fileHandleForReading.read(upToCount: 5) == Data("held\n".utf8))
        return (process, input)
    }

    @Test(.needs("python3")) func `a lock ends with its process, although a forked child lives on`() throws {
        #expect(state() == .unknown)
        let (process, input) = try holder()
        // The child ends with its input.
        defer { try? input.fileHandleForWriting.close() }
        #expect(state() == .held)
        kill(process.processIdentifier, SIGKILL)
        #expect(eventually { state() == .free })
    }

    @Test func `a monitor's lock has a file until it is released`() {
        let locks = (0..<2).map { _ in MonitorLock(in: directory, of: other) }
        for lock in locks { lock.hold() }
        let names = scratch.names
        #expect(names.count == 2)
        for lock in locks { lock.hold() }
        #expect(scratch.names == names, "one that is held is kept")
        locks[0].release()
        #expect(scratch.names.count == 1)
        locks[1].release()
        #expect(scratch.names.isEmpty)
    }

    @Test func `a lock that the program has closed leaves no file behind`() throws {
        let lock = MonitorLock(in: directory, of: other)
        lock.hold()
        let name = try #require(scratch.names.first)
        let numbers = (directoryEntries("/proc/self/fd") ?? []).compactMap { Int32($0.name) }
        close(try #require(numbers.first { readLink("/proc/self/fd/\($0)")?.hasSuffix("/\(name)") == true }))
        lock.hold()
        #expect(scratch.names.count == 1 && scratch.names != [name])
        lock.release()
        #expect(scratch.names.isEmpty)
    }

    @Test func `a directory that takes no files has no locks`() {
        let lock = MonitorLock(in: FixedDirectory("/proc/self/fdinfo"), of: other)
        lock.hold()
        let name = ReportDirectory.temporaryName(for: MonitorLock.fileName, of: other)
        let names = MonitorLock.Names(among: [name, "0"])
        #expect(names.state(of: other, in: FixedDirectory("/proc/self/fdinfo")) == .unknown)
    }

    /// One of many reports must not look through the names of all.
    @Test func `a process has its locks, with the name of its host`() {
        let host = ProcessIdentity(
            pid: 1, startTicks: 7, pidNamespace: "pid:[4026532222]", bootID: Self.boots.own, host: "web-3")
        let names = MonitorLock.Names(among: [
            ReportDirectory.temporaryName(for: MonitorLock.fileName, of: host), ".stall-monitor.x.tmp", "stall-x.json",
        ])
        #expect(names.process(like: host.withoutHost) == host)
        #expect(names.process(like: other) == nil, "of another boot")
        #expect(MonitorLock.Names(among: []).process(like: host) == nil)
    }
}
