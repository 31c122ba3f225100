import Testing

@testable import StallWatch

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
        ] as [(String, UInt64, String, SystemCall.Purpose)])
    func theWaitChannelShowsTheRestartedCall(
        channel: String, argument: UInt64, name: String, purpose: SystemCall.Purpose
    ) throws {
        let original = try call("restart_syscall", argument, 0, 7).original(waitChannel: channel)
        #expect(original.name == name)
        #expect(original.purpose == purpose)
        #expect(original.arguments == [argument, 0, 7])
    }

    #if arch(x86_64)
        @Test(arguments: [(0, .sleep), (2, .io)] as [(UInt64, SystemCall.Purpose)])
        func aRestartedPollKeepsItsPurpose(count: UInt64, purpose: SystemCall.Purpose) throws {
            let original = try call("restart_syscall", 0, count, 500).original(
                waitChannel: "poll_schedule_timeout.constprop.0")
            #expect(original.name == "poll")
            #expect(original.purpose == purpose)
        }
    #endif

    /// A thread that was just resumed is not in its wait yet, so only its stack shows the call.
    @Test(
        arguments: [
            (["clock_nanosleep", "nanosleep", nil], "clock_nanosleep"), ([nil, "poll"], "poll"),
            ([nil, nil, "pthread_cond_timedwait"], "futex"), ([nil, nil], "restart_syscall"),
            (["syscall"], "restart_syscall"), (["read"], "restart_syscall"), ([], "restart_syscall"),
        ] as [([String?], String)])
    func theInnermostFunctionsShowTheRestartedCall(functions: [String?], name: String) throws {
        let frames = functions.map { NamedFrame(function: $0, image: "libc.so.6") }
        #expect(try call("restart_syscall", 0, 0, 7).original(frames: frames).name == name)
    }

    @Test func functionsOutsideTheInnermostLibraryFramesDoNotCount() throws {
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
