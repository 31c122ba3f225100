import CStalls
import StallWatch

extension Scenario {
    /// Stalls of every cause except locks, which the report must name.
    static let causeScenarios: [Scenario] = computingScenarios + [throttled] + blockingScenarios

    private static let computingScenarios: [Scenario] = [
        .inMainLoop(
            "cpu-kernel-copy", "the kernel copies memory",
            .main(.timer, in: "readFromTheKernel(_:for:)", cause: "cpu")
        ) { readFromTheKernel("/dev/zero", for: $0) },
        .inMainLoop(
            "cpu-random", "the kernel makes random bytes",
            .main(.source0, in: "readFromTheKernel(_:for:)", cause: "cpu")
        ) { readFromTheKernel("/dev/urandom", for: $0) },
        .inMainLoop(
            "half-and-half", "a block computes for half of the time and sleeps for the other half", times: 3,
            .main(.mainQueue, in: "computeAndSleep(for:)", cause: "cpu", onCPU: 1.5), computeAndSleep),
        .inMainLoop(
            "starved", "nine threads compute on the CPU to which the main thread is bound", times: 3,
            .main(.timer, in: "spinTheCPU(for:)", cause: "cpuContention"), with: { _ in Competitors(count: 9) }
        ) { competitors, stall in competitors.run { spinTheCPU(for: stall) } },
        .inMainLoop(
            "paging", "a block touches the pages of a mapped file that is not in memory",
            .main(.performedBlock, in: "touchThePages(of:for:)", cause: "paging"),
            with: { try ScratchFile(megabytes: 128, in: $0.directory) }, end: { $0.close() }, touchThePages),
    ]

    private static let throttled = Scenario.stalling(
        "throttled", "the CPU quota of the main thread's cgroup is used up", times: 2,
        .main(.timer, in: "spinTheCPU(for:)", cause: "throttled")
    ) { context in
        let group = try QuotaGroup(share: 0.05)
        // The moves between groups take some 20 ms, so they have their own turns. In between the loop waits until the
        // watchdog waits too. Then the watchdog first polls at the beginning of the stall, before all throttled time.
        _ = await MainLoop.timer { group.enter() }
        await pause(context.threshold * 2)
        let duration = await MainLoop.timer { spinTheCPU(for: context.stall) }
        _ = await MainLoop.timer { group.leave() }
        return duration
    }

    private static let blockingScenarios: [Scenario] = [
        .inMainLoop(
            "usleep", "usleep(3)", .main(.timer, in: "sleepInMicroseconds(for:)", cause: "sleep", onCPU: 0),
            sleepInMicroseconds),
        .inMainLoop(
            "signal-handler", "a signal interrupts a timer, and its handler sleeps on a stack of its own",
            .main(.timer, in: "sleep_in_handler", cause: "sleep")
        ) { _ = stalls_sleep_in_handler(UInt32($0.milliseconds)) },
        // Closed after the stall, because freeing the blocks takes time and must not stall the main thread.
        .inMainLoop(
            "fsync", "fsync(2) of a large file", .main(.mainQueue, in: "synchronize(_:for:)", cause: "io"),
            with: { try ScratchFile(megabytes: 64, isDirty: true, in: $0.directory) }, end: { $0.close() }, synchronize),
        .inMainLoop(
            "fifo", "read(2) of an empty FIFO", .main(.timer, in: "readTheEmptyPipe(_:)", cause: "io", call: "read(/"),
            with: { BytePipe(fifoIn: $0.directory, emptyFor: $0.stall) }
        ) { fifo, _ in readTheEmptyPipe(fifo) },
        .inMainLoop(
            "connect", "connect(2) to a socket whose queue is full",
            .main(.source0, in: "connectTo(_:)", cause: "io", call: "connect(@stallwatch-scenarios-"),
            with: { BusyServer(.unix, for: $0.stall) }
        ) { server, _ in connectTo(server) },
        .inMainLoop(
            "connect-tcp", "connect(2) to a loopback port whose queue is full",
            .main(.mainQueue, in: "connectTo(_:)", cause: "io", call: "connect(127.0.0.1:"),
            with: { BusyServer(.tcp, for: $0.stall) }
        ) { server, _ in connectTo(server) },
        .inMainLoop(
            "silent-server", "getaddrinfo(3) asks a name server that never answers",
            .main(.performedBlock, in: "lookUpAName(at:for:)", cause: "io", call: "poll(socket to 127.0.0.1:"),
            with: { _ in SilentServer() }, lookUpAName),
    ]
}
