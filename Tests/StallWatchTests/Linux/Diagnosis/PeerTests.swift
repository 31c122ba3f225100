import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

/// What is said of a process, from the files that it has in /proc.
@Suite struct PeerTests {
    private static let own: Int32 = 4700

    /// Writes the files of a process that started 40 s after the boot.
    private func process(
        state: String = "S", parent: Int32 = 1, threads: Int = 1, exitSignal: Int = 17, syscall: String? = nil,
        wchan: String? = nil
    ) throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        let fields = "\(parent) 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 \(threads) 0 4000"
        let rest = (23..<38).map(String.init).joined(separator: " ")
        try directory.write("stat", "812 (a b) c) \(state) \(fields) \(rest) \(exitSignal) 3\n")
        try directory.write("comm", "python3\n")
        if let syscall { try directory.write("syscall", syscall) }
        if let wchan { try directory.write("wchan", wchan) }
        return directory
    }

    private func read(
        _ directory: TemporaryDirectory, isConfirmed: Bool = true, waitingSince: UInt64 = 45_000_000_000
    ) -> Peer? {
        Peer.reading(
            812, as: .holder, isConfirmed: isConfirmed, waitingSince: waitingSince, in: directory.path,
            now: 42_000_000_000, ownProcess: Self.own)
    }

    private func call(_ name: String, stackPointer: String = "0x7ffd00000000") throws -> String {
        let number = try #require(SystemCallNames.current.number(of: name))
        return "\(number) 0x9 0x0 0x0 0x0 0x0 0x0 \(stackPointer) 0x7f0000001000\n"
    }

    @Test func `a process is described by name, age, state and call`() throws {
        let peer = try #require(read(try process(syscall: try call("clock_nanosleep"), wchan: "hrtimer_nanosleep")))
        #expect(peer.name == "python3" && peer.state == "S" && peer.threads == 1 && peer.process == 812)
        #expect(peer.age == 2_000_000_000)
        #expect(peer.waitChannel == "hrtimer_nanosleep")
        if Peer.mayReadCalls { #expect(peer.call?.name == "clock_nanosleep") }
        #expect(peer.reason == nil && !peer.isThisProcess)
    }

    @Test func `the numbers of a 32-bit program are not read`() throws {
        let peer = try #require(read(try process(syscall: try call("futex", stackPointer: "0xffffd000"), wchan: "x")))
        #expect(peer.call == nil)
    }

    @Test func `what may not be read is said`() throws {
        let peer = try #require(read(try process(wchan: "0")))
        #expect(peer.call == nil && peer.waitChannel == nil)
        #expect(peer.reason == "the system does not let this process read what the other one waits in")
        #expect(try #require(read(try process(state: "R", syscall: "running\n"))).reason == nil)
        #expect(try #require(read(try process(state: "Z"))).reason == nil)
    }

    @Test func `a number that was given again is not believed`() throws {
        let young = try process()
        let peer = try #require(read(young, isConfirmed: false, waitingSince: 39_000_000_000))
        #expect(peer.name == nil && peer.age == nil && peer.process == 812)
        #expect(peer.reason?.contains("started after the wait began") == true)
        #expect(read(young, isConfirmed: true, waitingSince: 39_000_000_000)?.name == "python3")
        // The start is known in ticks of 10 ms.
        #expect(read(young, isConfirmed: false, waitingSince: 39_990_000_000)?.name == "python3")
    }

    @Test func `this process and the monitor's helper are no other processes`() throws {
        let own = Peer.reading(Self.own, as: .writer, isConfirmed: true, waitingSince: 0, ownProcess: Self.own)
        #expect(own?.isThisProcess == true && own?.name == nil)
        #expect(read(try process(parent: Self.own, exitSignal: 0)) == nil)
        #expect(read(try process(parent: Self.own, exitSignal: 17)) != nil)
        #expect(read(try TemporaryDirectory()) == nil)
    }

    @Test(arguments: [
        ("6.18.44", true), ("5.7.0-rc1", true), ("5.10.0-30-amd64", true), ("5.6.19", false), ("4.18.0-553.el8", false),
        ("", false), ("linux", false),
    ]) func `calls are read where that does not wait for execve`(release: String, isRead: Bool) {
        #expect(Peer.mayReadCalls(kernel: release) == isRead)
    }
}
