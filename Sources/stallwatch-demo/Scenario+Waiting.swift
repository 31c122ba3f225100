import CDemo
import StallWatch

extension Scenario {
    /// Stalls of the main run loop in whatever else a thread can wait for.
    static let waitingScenarios: [Scenario] = [
        .stalling("thread-join", "a source0 joins a thread", times: 2, .main(.source0, in: "joinTheThread(for:)")) {
            stage in
            await MainLoop.source0 { joinTheThread(for: stage.stall) }
        },
        .stalling(
            "child-process", "a timer waits for a child process", times: 2,
            .main(.timer, in: "waitForTheChild(for:)", cause: "syscall", call: "wait4(process ")
        ) { stage in
            await MainLoop.timer { waitForTheChild(for: stage.stall) }
        },
        .stalling("epoll", "a source0 waits in epoll_wait(2)", times: 2, .main(.source0, in: "demo_wait_in_epoll")) {
            stage in
            await MainLoop.source0 { demo_wait_in_epoll(Int32(stage.stall.milliseconds)) }
        },
        .stalling(
            "socket", "a main-queue block receives from a silent socket with a timeout", times: 2,
            .main(.mainQueue, in: "receiveFromTheSilentSocket(for:)")
        ) { stage in
            await MainLoop.mainQueue { receiveFromTheSilentSocket(for: stage.stall) }
        },
        .stalling(
            "queue-sync", "a source0 calls sync on a busy queue", times: 2,
            .main(.source0, in: "syncOnTheBusyQueue(_:)")
        ) { stage in
            let queue = await BusyQueue.busy(for: stage.stall)
            return await MainLoop.source0 { syncOnTheBusyQueue(queue) }
        },
        .stalling(
            "dispatch-group", "a timer waits for a dispatch group", times: 2,
            .main(.timer, in: "waitForTheGroup(for:)", lock: .dispatchGroup)
        ) { stage in
            await MainLoop.timer { waitForTheGroup(for: stage.stall) }
        },
        .stalling(
            "allocations", "a main-queue block allocates and frees", times: 2,
            .main(.mainQueue, in: "allocateAndFree(for:)")
        ) { stage in
            await MainLoop.mainQueue { allocateAndFree(for: stage.stall) }
        },
        .stalling(
            "loader-lock", "a source0 sleeps while it holds the dynamic loader's lock", times: 2,
            .main(.source0, in: "sleepTooLong(for:)")
        ) { stage in
            await MainLoop.source0 { sleepWithLoaderLock(for: stage.stall) }
        },
    ]
}
