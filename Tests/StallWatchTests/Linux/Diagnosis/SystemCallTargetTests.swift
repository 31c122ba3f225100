import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

/// Targets of calls on existing and closed descriptors, files, sockets and processes.
@Suite struct SystemCallTargetTests {
    private func target(_ name: String, _ arguments: UInt64...) throws -> String? {
        let number = try #require((0..<500).first { SystemCallNames.current.name($0) == name })
        let call = SystemCall(
            number: number, arguments: arguments + [UInt64](repeating: 0, count: 6 - arguments.count), stackPointer: 0,
            programCounter: 0
        )
        return call.target(memory: GuardedMemory())
    }

    private func argument(_ descriptor: Int32) -> UInt64 { UInt64(UInt32(bitPattern: descriptor)) }

    private func address(_ pointer: UnsafeRawPointer?) -> UInt64 { UInt64(UInt(bitPattern: pointer)) }

    @Test func `a file is named by its path and says that it is deleted`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/wal"
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        #expect(try target("fsync", argument(file)) == path)
        unlink(path)
        #expect(try target("fsync", argument(file)) == path + " (deleted)")
        close(file)
    }

    @Test func `an epoll instance that watches nothing is known by its lines`() {
        let lines = "pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t1050\n"
        #expect(SystemCall.isEmptySet(lines) && !SystemCall.isEmptySet("") && !SystemCall.isEmptySet(nil))
        let watched = "tfd:        5 events:       19 data:                5  pos:0 ino:1 sdev:f\n"
        #expect(!SystemCall.isEmptySet(lines + watched))
    }

    /// Metadata calls wait for the same server as reads do.
    @Test(
        arguments: [
            ("statfs", 0), ("getxattr", 0), ("truncate", 0), ("utimensat", 1), ("fchmodat", 1), ("linkat", 1),
            ("renameat2", 1), ("name_to_handle_at", 1), ("symlinkat", 2),
        ])
    func `each call with a path is for a file that it names`(name: String, index: Int) throws {
        var arguments = [UInt64](repeating: 0, count: 6)
        let call = try "/srv/data".withCString { path in
            arguments[index] = address(path)
            #expect(
                try target(name, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]) == "/srv/data")
            return SystemCall(
                number: try #require(SystemCallNames.current.number(of: name)), arguments: arguments, stackPointer: 0,
                programCounter: 0)
        }
        #expect(call.purpose == .io && !call.takesDescriptor)
    }

    @Test func `a path without a directory is below the call's own`() throws {
        let directory = try TemporaryDirectory()
        let file = open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(file) }
        let (name, none) = ("notes", "")
        #expect(
            try name.withCString { try target("openat", argument(file), address($0)) } == directory.path + "/notes")
        #expect(try name.withCString { try target("openat", argument(AT_FDCWD), address($0)) } == "notes")
        // fstat(3) and futimens(3).
        #expect(try none.withCString { try target("newfstatat", argument(file), address($0)) } == directory.path)
        #expect(try target("utimensat", argument(file), 0) == directory.path)
    }

    @Test func `each call by descriptor has the target of that by path`() throws {
        for name in SystemCall.paths.keys where SystemCallNames.current.number(of: "f" + name) != nil {
            #expect(SystemCall.descriptors["f" + name] == 0, "f\(name)")
        }
        for name in ["sendto", "recvfrom", "lseek", "fgetxattr", "timerfd_settime", "mq_timedsend"] {
            let number = try #require(SystemCallNames.current.number(of: name))
            let call = SystemCall(number: number, arguments: [5], stackPointer: 0, programCounter: 0)
            #expect(call.takesDescriptor && call.purpose == .io, "\(name)")
        }
        #expect(SystemCall.descriptors["mmap"] == 4 && SystemCall.descriptors["pidfd_send_signal"] == nil)
    }

    /// Simulates a descriptor that another thread has closed; uses an invalid number, because another test could reopen
    /// the number of a closed descriptor.
    @Test func aClosedDescriptorHasNoName() throws {
        #expect(try target("read", 1_000_000) == nil)
        #expect(try target("read", UInt64(UInt32.max)) == nil)
        #expect(try target("connect", 1_000_000, 0x10, 16) == nil)
    }

    /// The number may be another file's: that of the monitor's own files, which are open for a moment.
    @Test func `a descriptor that a call gives up is not looked up`() throws {
        let file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        #expect(try target("close", argument(file)) == "descriptor \(file), which is no longer open")
        #expect(try target("dup3", 0, argument(file)) == "descriptor \(file), whose earlier file it closes")
        let number = try #require(SystemCallNames.current.number(of: "close"))
        let call = SystemCall(number: number, arguments: [argument(file)], stackPointer: 0, programCounter: 0)
        #expect(!call.takesDescriptor)
    }

    /// Another thread may have closed the call's descriptor, and its number may be another file's.
    @Test func `a call is for no file that it cannot wait for`() throws {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        let file = open("/dev/null", O_RDWR | O_CLOEXEC)
        let remote = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let local = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { for descriptor in ends + [file, remote, local] { close(descriptor) } }
        let families = [FileFamily.pipe, .other, .socket, .unixSocket]
        #expect([ends[0], file, remote, local].map { FileFamily(of: $0) } == families)
        #expect(FileFamily(of: 1_000_000) == nil)
        func possible(_ function: String) -> [FileFamily] { families.filter { !$0.isRuledOut(by: function) } }
        #expect(possible("anon_pipe_read") == [.pipe] && possible("pipe_write.isra.0") == [.pipe])
        #expect(possible("unix_stream_read_generic") == [.unixSocket])
        #expect(possible("sk_wait_data") == [.socket, .unixSocket])
        #expect(possible("folio_wait_bit_common") == [.other])
        #expect(possible("schedule_timeout") == families && possible("wait_woken") == families)
        func isLost(_ name: String, _ arguments: UInt64...) throws -> Bool {
            let number = try #require(SystemCallNames.current.number(of: name))
            let call = SystemCall(
                number: number, arguments: arguments + [0, 0, 0, 0, 0], stackPointer: 0, programCounter: 0)
            return call.hasLostFile(of: 0)
        }
        // Calls for a descriptor that is not open for them do not wait.
        #expect(try isLost("read", argument(ends[1])) && isLost("write", argument(ends[0])))
        #expect(try !isLost("read", argument(ends[0])) && !isLost("write", argument(ends[1])))
        #expect(try !isLost("ppoll", argument(ends[1])) && !isLost("read", 1_000_000))
    }

    @Test func longPathsAreWholeOrMissing() throws {
        let scratch = try TemporaryDirectory()
        let component = String(repeating: "long", count: 50)
        var path = scratch.path
        var directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // PATH_MAX is 4096: the last ones are longer than a valid path.
        for _ in 0..<24 {
            mkdirat(directory, component, 0o700)
            let inner = openat(directory, component, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            try #require(inner >= 0)
            close(directory)
            directory = inner
            path += "/" + component
            let named = try target("fsync", argument(directory))
            #expect(named == (path.utf8.count < 4096 ? path : nil))
        }
        close(directory)
        // The path argument of a call is truncated.
        let long = "/" + String(repeating: "x", count: 4_000)
        let cut = try long.withCString { try target("openat", 0, address($0)) }
        #expect(cut == String(long.prefix(255)))
    }

    @Test func unreadableArgumentsHaveNoTarget() throws {
        #expect(try target("openat", 0, 0x10) == nil)
        #expect(try target("openat", 0, .max) == nil)
        #expect(try target("nanosleep", 0x10) == nil)
        #expect(try target("clock_nanosleep", 1, 0, 0x10) == nil)
        #expect(try target("ppoll", 0x10, 3) == nil)
        #expect(try target("ppoll", .max - 4, .max) == nil)
        #expect(try target("connect", .max, .max, .max) == nil)
    }

    @Test func aSleepIsNamedByItsLength() throws {
        var time = timespec(tv_sec: 1, tv_nsec: 500_000_000)
        #expect(try target("nanosleep", address(&time)) == "1500 ms")
        time.tv_nsec = 1_000
        #expect(try target("clock_nanosleep", 1, 0, address(&time)) == "1000.001 ms")
        // A point in time (TIMER_ABSTIME), and an invalid duration.
        #expect(try target("clock_nanosleep", 1, 1, address(&time)) == nil)
        time.tv_nsec = -1
        #expect(try target("nanosleep", address(&time)) == nil)
    }

    @Test func aSocketIsNamedByItsPeer() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer {
            close(listener)
            close(client)
        }
        var bytes: [UInt8] = [UInt8(AF_INET), 0, 0, 0, 127, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
        var length = socklen_t(bytes.count)
        let port = try bytes.withUnsafeMutableBytes { buffer -> UInt16 in
            let address = try #require(buffer.baseAddress?.assumingMemoryBound(to: sockaddr.self))
            try #require(bind(listener, address, length) == 0 && listen(listener, 1) == 0)
            getsockname(listener, address, &length)
            #expect(connect(client, address, length) == 0)
            return UInt16(buffer[2]) << 8 | UInt16(buffer[3])
        }
        #expect(try target("recvfrom", argument(client)) == "socket to 127.0.0.1:\(port)")
        #expect(try target("accept4", argument(listener)) == "socket at 127.0.0.1:\(port)")
        // The argument of connect(2) has the address before the socket has a peer.
        #expect(
            try bytes.withUnsafeBytes { try target("connect", 1_000_000, address($0.baseAddress), 16) }
                == "127.0.0.1:\(port)")

        var ends: [Int32] = [-1, -1]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
        let unnamed = try target("recvfrom", argument(ends[0]))
        #expect(unnamed?.hasPrefix("socket:[") == true)
        for end in ends { close(end) }
    }

    @Test func pollNamesItsFirstDescriptors() throws {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        defer { for end in ends { close(end) } }
        var polled = [pollfd](repeating: pollfd(fd: ends[0], events: 1, revents: 0), count: 6)
        // A negative descriptor is ignored, as poll(2) allows.
        polled[1].fd = -1
        let named = try polled.withUnsafeBytes { try target("ppoll", address($0.baseAddress), 6) }
        let pipe = try #require(readLink("/proc/self/fd/\(ends[0])"))
        #expect(named == "\(pipe), \(pipe), \(pipe) and 2 more")
    }

    @Test func aProcessIsNamedWhileItExists() throws {
        let child = Command(program: "/usr/bin/env", arguments: ["sleep", "60"]).process()
        try child.run(atMost: Process.timeout)
        defer { child.kill() }
        let pid = child.processIdentifier
        #expect(eventually { (try? target("wait4", argument(pid))) == "process \(pid) \"sleep\"" })
        #expect(try target("waitid", 1, argument(pid)) == "process \(pid) \"sleep\"")
        child.kill()
        child.waitUntilExit()
        #expect(try target("wait4", argument(pid)) == "process \(pid)")
        #expect(try target("wait4", argument(-1)) == "any child")
        #expect(try target("waitid", 0, 0) == "any child")
        #expect(try target("wait4", argument(-812)) == "any child of process group 812")
        #expect(try target("waitid", 2, 812) == "any child of process group 812")
        #expect(try target("wait4", 0) == "any child of process group \(getpgrp())")
        #expect(try target("waitid", 2, 0) == "any child of process group \(getpgrp())")
    }
}
