import CStalls
import Dispatch
import StallWatch

extension Scenario {
    static let quietScenarios: [Scenario] = [
        .quiet("idle", "the loop waits for 3 s") { _ in await pause(.seconds(3)) },
        .quiet("healthy-storm", "200,000 source0 turns back to back") { _ in await MainLoop.source0Turns(200_000) },
        .short("short", "40 sleeps of 60 % of the threshold, one per turn", times: 0.6) { context in
            await MainLoop.callInTurn(40, pausing: .milliseconds(10)) { sleepTooLong(for: context.stall) }.max()
                ?? .zero
        },
        .quiet("busy-timers", "a timer fires 1,000 times a second for 3 s") { _ in
            let timer = BusyTimer(on: .main)
            await pause(.seconds(3))
            timer.stop()
        },
    ]

    /// A healthy loop beside threads that compete for its CPU.
    static let loadScenarios: [Scenario] = [
        .quiet(
            "under-load", "timers, sources and main-queue blocks beside two threads that compute all the time",
            tolerating: "cpuContention"
        ) { context in
            let hogs = Competitors(count: 2, sharesTheCPU: false)
            let timers = [BusyTimer(on: .main, every: 0.004), BusyTimer(on: .main, every: 0.021)]
            let end = ContinuousClock.now + context.loadTime
            while ContinuousClock.now < end {
                for callout in MainLoop.callouts { _ = await callout { spinTheCPU(for: .microseconds(300)) } }
                _ = await DrivenLoop.main.source1 { spinTheCPU(for: .microseconds(300)) }
                await pause(.milliseconds(2))
            }
            for timer in timers { timer.stop() }
            hogs.stop()
        }
    ]

    /// Stalls of the main run loop in other kinds of waits.
    static let waitingScenarios: [Scenario] = [
        .inMainLoop(
            "thread-join", "a source0 joins a thread", .main(.source0, in: "joinTheThread(for:)"), joinTheThread),
        .inMainLoop(
            "child-process", "a timer waits for a child process",
            .main(.timer, in: "waitForTheChild(for:)", cause: "syscall", call: "wait4(process ")
                .waiting(for: .child, in: "clock_nanosleep"), waitForTheChild),
        .inMainLoop("epoll", "a source0 waits in epoll_wait(2)", .main(.source0, in: "stalls_wait_in_epoll")) {
            stalls_wait_in_epoll(Int32($0.milliseconds))
        },
        .inMainLoop(
            "socket", "a main-queue block receives from a silent socket with a timeout",
            .main(.mainQueue, in: "receiveFromTheSilentSocket(for:)"), receiveFromTheSilentSocket),
        .inMainLoop(
            "queue-sync", "a source0 calls sync on a busy queue", .main(.source0, in: "waitForTheQueue(_:)"),
            with: { await DispatchQueue.busy(for: $0.stall) }
        ) { queue, _ in waitForTheQueue(queue) },
        .inMainLoop(
            "dispatch-group", "a timer waits for a dispatch group",
            .main(.timer, in: "waitForTheGroup(for:)", lock: .dispatchGroup), waitForTheGroup),
        .inMainLoop(
            "allocations", "a main-queue block allocates and frees",
            .main(.mainQueue, in: "allocateAndFree(for:)"), allocateAndFree),
        .inMainLoop(
            "loader-lock", "a source0 sleeps while it holds the dynamic loader's lock",
            .main(.source0, in: "sleepTooLong(for:)")
        ) { sleepWithLoaderLock(for: $0) },
    ]

    /// Stalls while the app has paused the monitor.
    static let pausedScenarios: [Scenario] = [
        .quiet("paused", "a timer sleeps while the monitor is paused", suppressed: .paused) { context in
            let monitor = context.monitor
            let before = context.suppressed([.paused])
            _ = await MainLoop.timer {
                monitor.withMonitoringPaused {
                    // Until the watchdog has looked, which a busy machine may keep from a CPU.
                    for _ in 0..<100 where context.suppressed([.paused]) == before {
                        sleepTooLong(for: context.threshold * 2)
                    }
                }
            }
        },
        .quiet("ignore-scope", "a source0 sleeps in an ignored scope", suppressed: .paused) { context in
            let monitor = context.monitor
            _ = await DrivenLoop.main.source0 {
                let scope = monitor.beginPause()
                sleepTooLong(for: context.threshold * 2)
                scope.end()
            }
        },
        .stalling(
            "stall-after-pause", "a timer sleeps in a pause and then goes on sleeping", times: 2,
            .main(.timer, in: "sleepTooLong(for:)")
        ) { context in
            let monitor = context.monitor
            let injected = DurationBox()
            _ = await MainLoop.timer {
                monitor.withMonitoringPaused { sleepTooLong(for: context.threshold * 1.5) }
                injected.measure { sleepTooLong(for: context.stall) }
            }
            return injected.value
        },
    ]
}
