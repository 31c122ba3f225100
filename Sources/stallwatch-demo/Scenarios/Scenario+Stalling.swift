import StallWatch

extension Scenario {
    /// Stalls of the main run loop, in the four most common kinds of callout.
    static let stallingScenarios: [Scenario] = [
        .stalling("cpu-spin", "a timer computes", times: 3, .main(.timer, in: "spinTheCPU(for:)", cause: "cpu")) {
            context in
            await MainLoop.timer { spinTheCPU(for: context.stall) }
        },
        .stalling(
            "inlined", "a timer sleeps in a function that the optimizer inlines", times: 2,
            .main(.timer, in: "sleepInTheCaller(for:)", cause: "sleep")
        ) { context in
            await MainLoop.timer { sleepInTheCaller(for: context.stall) }
        },
        .stalling("sleep", "a source0 sleeps", times: 2, .main(.source0, in: "sleepTooLong(for:)", cause: "sleep")) {
            context in
            await MainLoop.source0 { sleepTooLong(for: context.stall) }
        },
        .stalling(
            "lock", "a main-queue block waits for a mutex that another thread holds", times: 2.5,
            .main(.mainQueue, in: "waitForTheLock(_:)", lock: .pthreadMutex, owner: "lock-holder")
        ) { context in
            let lock = await HeldLock.held(for: context.stall)
            return await MainLoop.mainQueue { waitForTheLock(lock) }
        },
        .stalling(
            "pipe-read", "a performed block reads an empty pipe", times: 2,
            .main(.performedBlock, in: "readTheEmptyPipe(_:)", cause: "io")
        ) { context in
            let pipe = EmptyPipe(for: context.stall)
            return await MainLoop.performedBlock { readTheEmptyPipe(pipe) }
        },
        .stalling("timer", "a timer waits in poll(2)", times: 2, .main(.timer, in: "pollNothing(for:)", cause: "sleep"))
        { context in
            await MainLoop.timer { pollNothing(for: context.stall) }
        },
        .stalling(
            "source0", "a source0 waits in Thread.sleep", times: 2,
            .main(.source0, in: "sleepInFoundation(for:)", cause: "sleep")
        ) { context in
            await MainLoop.source0 { sleepInFoundation(for: context.stall) }
        },
        .stalling(
            "main-queue", "a main-queue block waits for a dispatch semaphore", times: 2,
            .main(.mainQueue, in: "waitForTheSemaphore(for:)", lock: .dispatchSemaphore)
        ) { context in
            await MainLoop.mainQueue { waitForTheSemaphore(for: context.stall) }
        },
        .stalling(
            "perform-block", "a performed block waits for an NSCondition", times: 2,
            .main(.performedBlock, in: "waitForTheCondition(for:)", lock: .condition)
        ) { context in
            await MainLoop.performedBlock { waitForTheCondition(for: context.stall) }
        },
    ]
}
