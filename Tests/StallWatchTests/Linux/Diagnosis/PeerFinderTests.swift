import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

/// Whom calls wait for, compared with what the test has opened and started.
@Suite struct PeerFinderTests {
    private func find(
        _ name: String, _ arguments: UInt64..., of thread: Int32 = 0, runs: UInt64 = 0,
        since: UInt64 = monotonicNow(), untilExit: Bool = false
    ) throws -> PeerAnswer? {
        let call = SystemCall(
            number: try #require(SystemCallNames.current.number(of: name)),
            arguments: arguments + [UInt64](repeating: 0, count: 6 - arguments.count), stackPointer: 0,
            programCounter: 0)
        let question = PeerQuestion(call, of: thread, runs: runs, GuardedMemory(), untilExit: untilExit)
        return question.flatMap { question in
            PeerFinder.answers(to: [(question, since: bootTime(at: since))]).first
        }
    }

    /// The processes of an answer that the test knows.
    ///
    /// A child that another test makes has every descriptor of this process from fork(2) to execve(2), so it may be in an
    /// answer, too, at any place.
    private func known(_ answer: PeerAnswer?, _ processes: Int32...) -> [Int32]? {
        answer?.peers.compactMap(\.pid).filter(processes.contains)
    }

    private func number(_ descriptor: Int32) -> UInt64 { UInt64(UInt32(bitPattern: descriptor)) }

    private func address(_ pointer: UnsafeRawPointer) -> UInt64 { UInt64(UInt(bitPattern: pointer)) }

    /// Two open files of the same file.
    private func twoFiles(in directory: TemporaryDirectory) throws -> (Int32, Int32) {
        let path = directory.path + "/lock"
        let files = (0..<2).map { _ in open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
        try #require(files.allSatisfy { $0 >= 0 })
        return (files[0], files[1])
    }

    /// Makes another thread wait for a lock of this process; what is returned lets it have the lock, and waits for it.
    private func wait(for file: Int32, lockedBy other: Int32) throws -> () -> Void {
        try #require(flock(other, LOCK_EX) == 0)
        let waiter = try WorkerThread(name: "test-flock") { flock(file, LOCK_EX) }
        return {
            flock(other, LOCK_UN)
            waiter.join()
        }
    }

    /// Returns the answer for a call, in which another thread waits, once it names a process; else the last answer.
    private func findKnown(_ name: String, _ arguments: UInt64...) throws -> PeerAnswer? {
        var answer: PeerAnswer?
        _ = eventually {
            let all = arguments + [UInt64](repeating: 0, count: 6 - arguments.count)
            answer = try? find(name, all[0], all[1], all[2])
            return answer?.isKnown == true
        }
        return answer
    }

    private func sleeper(input: Any? = nil) throws -> Process {
        let process = Command(program: "/bin/sleep", arguments: ["60"]).process()
        if let input { process.standardInput = input }
        try process.run(atMost: 60)
        let pid = process.processIdentifier
        try #require(eventually { readSmallFile("/proc/\(pid)/comm") == "sleep\n" && waits(pid) })
        return process
    }

    /// Whether a process waits in a call, as far as the system shows it.
    private func waits(_ process: Int32) -> Bool {
        readSmallFile("/proc/\(process)/stat").flatMap(ProcStat.init)?.letter == "S"
    }

    @Test(.needs("flock"))
    func `a file lock's holder is the process that has locked it`() throws {
        let directory = try TemporaryDirectory()
        let (file, other) = try twoFiles(in: directory)
        close(other)
        // The program that it becomes has the lock, and no child that would outlive it.
        let process = Command(
            program: try #require(Command.find("flock")),
            arguments: ["--no-fork", directory.path + "/lock", "/bin/sleep", "60"]
        ).process()
        try process.run(atMost: 60)
        let pid = process.processIdentifier
        try #require(eventually { readSmallFile("/proc/locks")?.contains(" \(pid) ") == true })
        try #require(eventually { readSmallFile("/proc/\(pid)/comm") == "sleep\n" })
        let waiter = try WorkerThread(name: "test-flock") { flock(file, LOCK_EX) }
        let answer = try findKnown("flock", number(file), UInt64(LOCK_EX))
        process.kill()
        waiter.join()
        close(file)
        #expect(answer?.peers.map(\.pid) == [pid])
        #expect(answer?.peers.first?.role == .holder)
        #expect(answer?.peers.first?.name == "sleep")
    }

    /// A struct flock for bytes 10 to 19, at an address that the kernel and the finder read.
    private static func writeLock() -> UnsafeMutablePointer<Glibc.flock> {
        let range = UnsafeMutablePointer<Glibc.flock>.allocate(capacity: 1)
        range.initialize(to: Glibc.flock())
        (range.pointee.l_type, range.pointee.l_start, range.pointee.l_len) = (Int16(F_WRLCK), 10, 10)
        return range
    }

    @Test func `a lock of an open file is found by the descriptor that shows it`() throws {
        let (file, other) = try twoFiles(in: try TemporaryDirectory())
        let range = Self.writeLock()
        defer {
            close(file)
            close(other)
            range.deallocate()
        }
        // F_OFD_SETLK and F_OFD_SETLKW are 37 and 38.
        try #require(fcntl(other, 37, range) == 0)
        let waiter = try WorkerThread(name: "test-lock") {
            let range = Self.writeLock()
            _ = fcntl(file, 38, range)
            range.deallocate()
        }
        let answer = try findKnown("fcntl", number(file), 38, address(range))
        #expect(answer?.peers.contains { $0.isThisProcess == true } == true)
        range.pointee.l_start = 30
        #expect(try find("fcntl", number(file), 38, address(range))?.peers == [], "no thread waits for these bytes")
        #expect(try find("fcntl", number(file), 1, address(range)) == nil, "F_GETFD waits for no lock")
        (range.pointee.l_type, range.pointee.l_start) = (Int16(F_UNLCK), 10)
        _ = fcntl(other, 37, range)
        waiter.join()
    }

    @Test func `a pipe's other end is open in a child and here`() throws {
        let input = Pipe()
        let process = try sleeper(input: input)
        defer { process.kill() }
        let written = try find("write", number(input.fileHandleForWriting.fileDescriptor))
        #expect(known(written, process.processIdentifier, getpid()) == [process.processIdentifier])
        #expect(written?.peers.first?.role == .reader)
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        let read = try find("read", number(ends[0]))
        #expect(read?.peers.first { $0.isThisProcess == true }?.role == .writer)
        try [ends[0], 1].withUnsafeBytes { polled in
            let polling = try find("ppoll", address(try #require(polled.baseAddress)), 1)
            #expect(polling?.peers.contains { $0.isThisProcess == true && $0.role == .writer } == true)
        }
        for end in ends { close(end) }
    }

    /// A child of fork(2) has every descriptor of this process until it execs.
    @Test func `a process that began after the wait is named last`() throws {
        let input = Pipe()
        // Foundation closes the end that it gives to the child.
        let own = fcntl(input.fileHandleForReading.fileDescriptor, F_DUPFD_CLOEXEC, 0)
        defer { close(own) }
        let process = try sleeper(input: input)
        defer { process.kill() }
        let descriptor = number(input.fileHandleForWriting.fileDescriptor)
        let now = try find("write", descriptor, since: monotonicNow())
        #expect(known(now, process.processIdentifier, getpid()) == [process.processIdentifier, getpid()])
        // Half of the machine's time ago.
        let before = try find("write", descriptor, since: monotonicNow() / 2)
        #expect(known(before, process.processIdentifier, getpid()) == [getpid(), process.processIdentifier])
    }

    @Test func `an awaited child is described`() throws {
        let process = try sleeper()
        defer { process.kill() }
        let pid = UInt64(process.processIdentifier)
        for answer in [try find("wait4", pid), try find("waitid", 1, pid)] {
            #expect(answer?.peers.first?.role == .child)
            #expect(answer?.peers.first?.name == "sleep")
        }
        #expect(try find("wait4", UInt64(UInt32.max)) == nil, "any child")
        #expect(try find("wait4", 0x3fff_fff0)?.reason == "the child has just ended")
    }

    /// Other tests have children of Foundation, too.
    @Test func `the child of a wait until its exit is this one or not known`() throws {
        let process = try sleeper()
        defer { process.kill() }
        var answers: [PeerAnswer] = []
        #expect(
            eventually {
                answers += [try? find("ppoll", 0, 0, untilExit: true)].compactMap(\.self)
                return answers.last?.isKnown == true || answers.last?.reason?.hasPrefix("it may be any of ") == true
                    || answers.last?.reason?.hasPrefix("the system does not show") == true
            }, "\(answers)")
        for answer in answers where answer.isKnown {
            #expect(answer.peers.map(\.pid) == [process.processIdentifier])
            #expect(answer.peers.first?.role == .child && answer.peers.first?.name == "sleep")
        }
        #expect(try find("futex", untilExit: true) == nil, "no wait of a run loop")
    }

    @Test func `a socket's other end is open in a child`() throws {
        var ends: [Int32] = [-1, -1]
        // No other test's child may have it open, too.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
        defer { close(ends[0]) }
        let process = try sleeper(input: FileHandle(fileDescriptor: ends[1], closeOnDealloc: false))
        close(ends[1])
        defer { process.kill() }
        let answer = try #require(try find("recvfrom", number(ends[0])))
        #expect(known(answer, process.processIdentifier) == [process.processIdentifier], "\(answer)")
        #expect(answer.peers.first?.role == .otherEnd)
    }

    /// The kernel names no process of a datagram socket (SO_PEERCRED).
    @Test func `a connected datagram socket has the other end's process`() throws {
        let directory = try TemporaryDirectory()
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let ends = [socket(AF_UNIX, kind, 0), socket(AF_UNIX, kind, 0)]
        defer { for end in ends { close(end) } }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: (directory.path + "/log").utf8.prefix(107)) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            // A sockaddr_un begins as every address does.
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(ends[0], $0, length) == 0 && connect(ends[1], $0, length) == 0
            }
        }
        try #require(isConnected)
        guard let link = readLink("/proc/self/fd/\(ends[1])"), let inode = UInt32(link.filter(\.isNumber)),
            UnixSocketPeer.inode(ofPeerOf: inode) != nil
        else { return notRun("the kernel has no unix_diag") }
        let answer = try #require(try find("sendto", number(ends[1])))
        #expect(answer.peers.contains { $0.isThisProcess == true && $0.role == .otherEnd }, "\(answer)")
        #expect(try find("recvfrom", number(ends[0])) == nil, "it is connected to none")
    }

    @Test func `a file that is opened in spite of a lease waits for its holder`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/document"
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        // F_SETSIG is 10: SIGIO would end the process. F_SETLEASE is 1024.
        guard fcntl(file, 10, SIGURG) == 0, fcntl(file, 1024, F_WRLCK) == 0 else {
            return notRun("the file system has no leases")
        }
        let id = Atomic<Int32>(0)
        let opener = try WorkerThread(name: "test-lease") {
            id.store(callingThread, ordering: .releasing)
            close(open(path, O_RDONLY | O_CLOEXEC))
        }
        var answer: PeerAnswer?
        _ = eventually {
            let thread = id.load(ordering: .acquiring)
            answer = try? path.withCString { try find("openat", 0, address($0), of: thread) }
            return answer?.isKnown == true
        }
        _ = fcntl(file, 1024, F_UNLCK)
        opener.join()
        #expect(try path.withCString { try find("openat", 0, address($0)) } == nil, "another thread waits")
        #expect(answer?.peers.map(\.role) == [.leaseHolder] && answer?.peers.first?.isThisProcess == true)
    }

    @Test func `a lock of this process has its holder until it is released`() throws {
        let (file, other) = try twoFiles(in: try TemporaryDirectory())
        defer {
            close(file)
            close(other)
        }
        let letGo = try wait(for: file, lockedBy: other)
        let answer = try findKnown("flock", number(file), UInt64(LOCK_EX))
        #expect(answer?.peers.contains { $0.isThisProcess == true } == true)
        letGo()
        let free = try find("flock", number(file), UInt64(LOCK_EX), runs: 1)
        #expect(free?.peers == [] && free?.reason?.contains("shows no holder") == true)
        #expect(try find("flock", 1_000_000, UInt64(LOCK_EX))?.reason != nil)
    }

    @Test func `a file lock that this process left to a child is held by the child`() throws {
        let (file, other) = try twoFiles(in: try TemporaryDirectory())
        defer { close(file) }
        try #require(flock(other, LOCK_EX) == 0)
        let process = try sleeper(input: FileHandle(fileDescriptor: other, closeOnDealloc: false))
        close(other)
        let waiter = try WorkerThread(name: "test-flock") { flock(file, LOCK_EX) }
        let answer = try findKnown("flock", number(file), UInt64(LOCK_EX))
        process.kill()
        waiter.join()
        #expect(known(answer, process.processIdentifier, getpid()) == [process.processIdentifier], "\(answer as Any)")
    }

    /// A server that listens leaves its connections to children.
    @Test func `a connection's maker is not said to have its other end`() throws {
        let process = try sleeper()
        defer { process.kill() }
        let reason = PeerFinder.unseenEnd(madeBy: process.processIdentifier, bootTimeNow())
        let words = "the system tells only the number of the process that connected or listened, now that of "
        #expect(reason.hasPrefix(words + "sleep (pid \(process.processIdentifier), running for "), "\(reason)")
        #expect(reason.hasSuffix(")"), "not what it does: \(reason)")
        #expect(PeerFinder.unseenEnd(madeBy: 0x3fff_fff0, bootTimeNow()) == "the process that made it has ended")
    }

    @Test func `one search answers several questions, in their order`() throws {
        let (first, second) = (Pipe(), Pipe())
        let number = try #require(SystemCallNames.current.number(of: "read"))
        let questions = [first, second].enumerated().compactMap { index, pipe in
            let call = SystemCall(
                number: number, arguments: [self.number(pipe.fileHandleForReading.fileDescriptor), 0, 0, 0, 0, 0],
                stackPointer: 0, programCounter: 0)
            return PeerQuestion(call, of: Int32(index), runs: 0, GuardedMemory())
        }
        try #require(questions.count == 2 && questions[0] != questions[1])
        try second.fileHandleForWriting.close()
        let answers = PeerFinder.answers(to: questions.map { ($0, since: bootTimeNow()) })
        #expect(known(answers[0], getpid()) == [getpid()])
        #expect(known(answers[1], getpid()) == [] && answers[1].reason != nil || answers[1].peers != [])
    }
}

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
        #expect(peer.name == "python3" && peer.state == "S" && peer.threads == 1 && peer.pid == 812)
        #expect(peer.runningMilliseconds == 2_000)
        #expect(peer.waitChannel == "hrtimer_nanosleep")
        if Peer.mayReadCalls { #expect(peer.systemCall == "clock_nanosleep") }
        #expect(peer.reason == nil && peer.isThisProcess == nil)
    }

    @Test func `the numbers of a 32-bit program are not read`() throws {
        let peer = try #require(read(try process(syscall: try call("futex", stackPointer: "0xffffd000"), wchan: "x")))
        #expect(peer.systemCall == nil)
    }

    @Test func `what may not be read is said`() throws {
        let peer = try #require(read(try process(wchan: "0")))
        #expect(peer.systemCall == nil && peer.waitChannel == nil)
        #expect(peer.reason == "the system does not let this process read what the other one waits in")
        #expect(try #require(read(try process(state: "R", syscall: "running\n"))).reason == nil)
        #expect(try #require(read(try process(state: "Z"))).reason == nil)
    }

    @Test func `a number that was given again is not believed`() throws {
        let young = try process()
        let peer = try #require(read(young, isConfirmed: false, waitingSince: 39_000_000_000))
        #expect(peer.name == nil && peer.runningMilliseconds == nil && peer.pid == 812)
        #expect(peer.reason?.contains("started after the wait began") == true)
        #expect(read(young, isConfirmed: true, waitingSince: 39_000_000_000)?.name == "python3")
        let unseen = read(try process(syscall: try call("clock_nanosleep"), wchan: "x"), isConfirmed: false)
        #expect(unseen?.name == "python3" && unseen?.runningMilliseconds == 2_000)
        #expect(unseen?.state == nil && unseen?.systemCall == nil && unseen?.waitChannel == nil)
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
