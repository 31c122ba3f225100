import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

@Suite struct SystemCallTests {
    @Test func bothTablesNameTheirCalls() {
        // The numbers of the headers that syscall(2) names.
        #expect(SystemCallNames.x86_64.name(202) == "futex")
        #expect(SystemCallNames.x86_64.name(74) == "fsync")
        #expect(SystemCallNames.x86_64.name(424) == "pidfd_send_signal")
        #expect(SystemCallNames.x86_64.name(400) == nil)
        #expect(SystemCallNames.aarch64.name(98) == "futex")
        #expect(SystemCallNames.aarch64.name(82) == "fsync")
        #expect(SystemCallNames.aarch64.name(25) == "fcntl")
        #expect(SystemCallNames.aarch64.name(-1) == nil)
    }

    @Test func socketAddressesAreWrittenAsUsual() {
        #expect(SocketName.decode([2, 0, 0x1f, 0x90, 127, 0, 0, 1]) == "127.0.0.1:8080")
        #expect(SocketName.decode([10, 0, 0, 80, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 15) + [1]) == "[::1]:80")
        #expect(SocketName.decode([1, 0] + Array("/run/x".utf8) + [0, 9]) == "/run/x")
        #expect(SocketName.decode([1, 0, 0] + Array("x".utf8)) == "@x")
        #expect(SocketName.decode([1, 0]) == nil)
    }
}

@Suite struct ThreadActivityTests {
    @Test(
        arguments: [
            (.faulting, "D", "folio_wait_bit_common", .faulting), (.running, "R", nil, .running),
            // A thread that another monitor's capture has stopped outside of a call does not wait for a page.
            (.faulting, "t", "ptrace_stop", .running),
            // Linux 5.4 and 5.10 show no function.
            (.faulting, "D", nil, .faulting), (.faulting, "t", nil, .running), (.faulting, "R", nil, .running),
            (nil, "S", "futex_wait_queue", .blocked), (nil, "S", nil, .blocked), (nil, "D", nil, .blocked),
            (nil, "R", nil, .running), (nil, "t", nil, .running), (nil, "Z", nil, .running),
        ] as [(ThreadActivity?, Character, String?, ThreadActivity)])
    func `the call, the state and the wait channel show what a thread does`(
        shown: ThreadActivity?, state: Character, channel: String?, activity: ThreadActivity
    ) {
        #expect(ThreadActivity(shown: shown, state: state.asciiValue ?? 0, waitChannel: channel) == activity)
    }
}

@Suite struct RestartedCallTests {
    private func call(_ name: String, _ arguments: UInt64...) throws -> SystemCall {
        SystemCall(
            number: try #require(SystemCallNames.current.number(of: name)), arguments: arguments, stackPointer: 0,
            programCounter: 0
        )
    }

    @Test(
        arguments: [
            ("hrtimer_nanosleep", 0, "clock_nanosleep", .sleep),
            ("do_nanosleep", UInt64.max - 5, "clock_nanosleep", .sleep),
            ("hrtimer_nanosleep", 0x7ffd_0000_1000, "nanosleep", .sleep),
            ("futex_do_wait", 0x55d0_0000, "futex", .lock),
            ("futex_wait_queue", 0x55d0_0000, "futex", .lock),
        ] as [(String, UInt64, String, Cause.Kind)])
    func theWaitChannelShowsTheRestartedCall(
        channel: String, argument: UInt64, name: String, purpose: Cause.Kind
    ) throws {
        let original = try call("restart_syscall", argument, 0, 7).original(waitChannel: channel)
        #expect(original.name == name)
        #expect(original.purpose == purpose)
        #expect(original.arguments == [argument, 0, 7])
    }

    #if arch(x86_64)
        @Test(arguments: [(0, .sleep), (2, .io)] as [(UInt64, Cause.Kind)])
        func aRestartedPollKeepsItsPurpose(count: UInt64, purpose: Cause.Kind) throws {
            let original = try call("restart_syscall", 0, count, 500).original(
                waitChannel: "poll_schedule_timeout.constprop.0")
            #expect(original.name == "poll")
            #expect(original.purpose == purpose)
        }
    #endif

    /// A thread that was just resumed is not in its wait yet, so only its stack shows the call.
    @Test(
        arguments: [
            (["clock_nanosleep", "nanosleep", nil], "clock_nanosleep"),
            // Where poll(3) is made of ppoll(2), as on aarch64, none is restarted by another call.
            ([nil, "poll"], SystemCallNames.current.number(of: "poll") == nil ? "restart_syscall" : "poll"),
            ([nil, nil, "pthread_cond_timedwait"], "futex"), ([nil, nil], "restart_syscall"),
            (["syscall"], "restart_syscall"), (["read"], "restart_syscall"), ([], "restart_syscall"),
        ] as [([String?], String)])
    func `the innermost functions show the restarted call`(functions: [String?], name: String) throws {
        let frames = functions.map { NamedFrame(function: $0, image: "libc.so.6") }
        #expect(try call("restart_syscall", 0, 0, 7).original(frames: frames).name == name)
    }

    @Test func `functions outside the innermost library frames do not count`() throws {
        let frames = [
            NamedFrame(function: nil, image: "app"), NamedFrame(function: "pthread_once", image: "libc.so.6"),
        ]
        #expect(try call("restart_syscall", 0).original(frames: frames).isRestarted)
    }

    @Test(arguments: [nil, "", "pipe_read", "ptrace_stop"])
    func anUnknownRestartedCallIsUnchanged(channel: String?) throws {
        let restarted = try call("restart_syscall", 0)
        #expect(restarted.original(waitChannel: channel) == restarted)
    }

    @Test func otherCallsAreUnchanged() throws {
        let read = try call("read", 0)
        #expect(read.original(waitChannel: "hrtimer_nanosleep") == read)
        #expect(read.original(frames: [NamedFrame(function: "poll", image: "libc.so.6")]) == read)
    }
}

/// What a call's arguments say of whom it waits for.
@Suite struct SystemCallPeersTests {
    private func call(_ name: String, _ arguments: UInt64...) throws -> SystemCall {
        SystemCall(
            number: try #require(SystemCallNames.current.number(of: name)), arguments: arguments, stackPointer: 0,
            programCounter: 0)
    }

    /// Returns the request of a call of fcntl(2) with a struct flock of these words.
    private func request(_ command: UInt64, _ words: UInt64...) throws -> FileLockRequest {
        try call("fcntl", 3, command, 0x1000).lockRequest(of: 900, inode: 7, Words(words, at: 0x1000))
    }

    @Test func `a request has the type and range of its call`() throws {
        let exclusive = try call("flock", 3, 2).lockRequest(of: 900, inode: 7, Words([], at: 0x1000))
        #expect(exclusive == FileLockRequest(.flock, isExclusive: true, of: 900, inode: 7))
        #expect(try !call("flock", 3, 1).lockRequest(of: 900, inode: 7, Words([], at: 0x1000)).isExclusive)
        // F_WRLCK is 1; from 10, 10 bytes, and to the end.
        #expect(try request(7, 1, 10, 10) == .init(.process, isExclusive: true, of: 900, inode: 7, bytes: 10...19))
        #expect(try request(38, 0, 10, 0) == .init(.openFile, isExclusive: false, of: -1, inode: 7, bytes: 10 ... .max))
    }

    @Test func `a range that depends on the file is not known`() throws {
        #expect(try request(7, 1 | 2 << 16, 10, 10).bytes == nil)
        #expect(try request(7, 1, 10, UInt64(bitPattern: -5)).bytes == nil)
        #expect(try request(7, 1, UInt64(bitPattern: -5), 10).bytes == nil)
        #expect(try request(7, 1, 1 << 62, 1 << 62).bytes == (1 << 62)...(1 << 63) - 1)
    }

    @Test(
        arguments: [
            ("read", true), ("preadv2", true), ("recvmsg", true), ("write", false), ("pwritev2", false),
            ("sendto", false),
        ])
    func `a transfer waits to read or to write`(name: String, reads: Bool) throws {
        let transfer = try #require(try call(name, 5).transfer(Words([], at: 0x1000)))
        #expect(transfer.descriptor == 5 && transfer.reads == reads)
    }

    @Test func `only a poll of one descriptor is a transfer`() throws {
        // POLLIN is 1, POLLOUT 4.
        let reading = try call("ppoll", 0x1000, 1).transfer(Words([5 | 1 << 32], at: 0x1000))
        #expect(reading?.descriptor == 5 && reading?.reads == true)
        #expect(try call("ppoll", 0x1000, 1).transfer(Words([5 | 4 << 32], at: 0x1000))?.reads == false)
        #expect(try call("ppoll", 0x1000, 2).transfer(Words([5, 6], at: 0x1000)) == nil)
        #expect(try call("ppoll", 0x9000, 1).transfer(Words([5], at: 0x1000)) == nil)
        #expect(try call("fsync", 5).transfer(Words([], at: 0x1000)) == nil)
    }

    @Test func `one child is awaited by its number`() throws {
        #expect(try call("wait4", 812).awaitedChild == 812)
        #expect(try call("wait4", UInt64(UInt32.max)).awaitedChild == nil)
        #expect(try call("wait4", 0).awaitedChild == nil)
        #expect(try call("waitid", 1, 812).awaitedChild == 812)
        #expect(try call("waitid", 0, 812).awaitedChild == nil)
        #expect(try call("waitid", 3, 1_000_000).awaitedChild == nil)
    }
}
