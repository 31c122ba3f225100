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
    func theKernelsWaitTellsWhichCallGoesOn(
        channel: String, argument: UInt64, name: String, purpose: SystemCall.Purpose
    ) throws {
        let original = try call("restart_syscall", argument, 0, 7).original(waitChannel: channel)
        #expect(original.name == name)
        #expect(original.purpose == purpose)
        #expect(original.arguments == [argument, 0, 7])
    }

    #if arch(x86_64)
        @Test(arguments: [(0, .sleep), (2, .io)] as [(UInt64, SystemCall.Purpose)])
        func aPollThatGoesOnIsOneOfAsMuch(count: UInt64, purpose: SystemCall.Purpose) throws {
            let original = try call("restart_syscall", 0, count, 500).original(
                waitChannel: "poll_schedule_timeout.constprop.0")
            #expect(original.name == "poll")
            #expect(original.purpose == purpose)
        }
    #endif

    @Test(arguments: [nil, "", "pipe_read", "ptrace_stop"])
    func whatIsNotKnownStaysAsItIs(channel: String?) throws {
        let restarted = try call("restart_syscall", 0)
        #expect(restarted.original(waitChannel: channel) == restarted)
    }

    @Test func otherCallsStayAsTheyAre() throws {
        let read = try call("read", 0)
        #expect(read.original(waitChannel: "hrtimer_nanosleep") == read)
        #expect(ThreadActivity.running.original(waitChannel: "futex_do_wait") == .running)
    }
}
