extension Scenario {
    /// The scenarios that must be reported.
    ///
    /// To add one, add a declaration here.
    static let stallingScenarios: [Scenario] = [
        .stalling("cpu-spin", "a timer computes", times: 3, in: "spinTheCPU(for:)") { stall in
            await MainLoop.timer { spinTheCPU(for: stall) }
        },
        .stalling("sleep", "a source0 sleeps", times: 2, in: "sleepTooLong(for:)") { stall in
            await MainLoop.source0 { sleepTooLong(for: stall) }
        },
        .stalling(
            "lock", "a main-queue block waits for a mutex that another thread holds", times: 2.5,
            in: "waitForTheLock(_:)"
        ) { stall in
            let lock = await HeldLock.held(for: stall)
            return await MainLoop.mainQueue { waitForTheLock(lock) }
        },
        .stalling("pipe-read", "a performed block reads an empty pipe", times: 2, in: "readTheEmptyPipe(_:)") { stall in
            let pipe = EmptyPipe(for: stall)
            return await MainLoop.performedBlock { readTheEmptyPipe(pipe) }
        },
        .stalling("timer", "a timer waits in poll(2)", times: 2, in: "pollNothing(for:)") { stall in
            await MainLoop.timer { pollNothing(for: stall) }
        },
        .stalling("source0", "a source0 waits in Thread.sleep", times: 2, in: "sleepInFoundation(for:)") { stall in
            await MainLoop.source0 { sleepInFoundation(for: stall) }
        },
        .stalling(
            "main-queue", "a main-queue block waits for a dispatch semaphore", times: 2, in: "waitForTheSemaphore(for:)"
        ) { stall in
            await MainLoop.mainQueue { waitForTheSemaphore(for: stall) }
        },
        .stalling(
            "perform-block", "a performed block waits for an NSCondition", times: 2, in: "waitForTheCondition(for:)"
        ) { stall in
            await MainLoop.performedBlock { waitForTheCondition(for: stall) }
        },
    ]
}
