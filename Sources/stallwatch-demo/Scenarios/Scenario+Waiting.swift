import CDemo
import StallWatch

extension Scenario {
    /// Stalls of the main run loop in other kinds of waits.
    static let waitingScenarios: [Scenario] = [
        .stalling("thread-join", "a source0 joins a thread", times: 2, .main(.source0, in: "joinTheThread(for:)")) {
            context in
            await MainLoop.source0 { joinTheThread(for: context.stall) }
        },
        .stalling(
            "child-process", "a timer waits for a child process", times: 2,
            .main(.timer, in: "waitForTheChild(for:)", cause: "syscall", call: "wait4(process ")
        ) { context in
            await MainLoop.timer { waitForTheChild(for: context.stall) }
        },
        .stalling("epoll", "a source0 waits in epoll_wait(2)", times: 2, .main(.source0, in: "demo_wait_in_epoll")) {
            context in
            await MainLoop.source0 { demo_wait_in_epoll(Int32(context.stall.milliseconds)) }
        },
        .stalling(
            "socket", "a main-queue block receives from a silent socket with a timeout", times: 2,
            .main(.mainQueue, in: "receiveFromTheSilentSocket(for:)")
        ) { context in
            await MainLoop.mainQueue { receiveFromTheSilentSocket(for: context.stall) }
        },
        .stalling(
            "queue-sync", "a source0 calls sync on a busy queue", times: 2,
            .main(.source0, in: "syncOnTheBusyQueue(_:)")
        ) { context in
            let queue = await BusyQueue.busy(for: context.stall)
            return await MainLoop.source0 { syncOnTheBusyQueue(queue) }
        },
        .stalling(
            "dispatch-group", "a timer waits for a dispatch group", times: 2,
            .main(.timer, in: "waitForTheGroup(for:)", lock: .dispatchGroup)
        ) { context in
            await MainLoop.timer { waitForTheGroup(for: context.stall) }
        },
        .stalling(
            "allocations", "a main-queue block allocates and frees", times: 2,
            .main(.mainQueue, in: "allocateAndFree(for:)")
        ) { context in
            await MainLoop.mainQueue { allocateAndFree(for: context.stall) }
        },
        .stalling(
            "loader-lock", "a source0 sleeps while it holds the dynamic loader's lock", times: 2,
            .main(.source0, in: "sleepTooLong(for:)")
        ) { context in
            await MainLoop.source0 { sleepWithLoaderLock(for: context.stall) }
        },
    ]
}
