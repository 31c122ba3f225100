import CStalls
import Dispatch
import Foundation
import Glibc
import StallWatch

extension Scenario {
    /// Each rule that says what to do, with the stall that it is right for, and with one that looks alike and is not its own.
    ///
    /// The same work after the advice was followed is the scenario `cured-` with the rule's id, in which nothing stalls.
    static let adviceCases: [(rule: String, right: String, near: String)] = [
        ("selfDeadlock", "deadlock-self", "deadlock-two"), ("lockOrder", "deadlock-two", "deadlock-three"),
        ("ownerWaits", "lock", "mutex-computing"), ("semaphoreInTask", "task-semaphore", "main-queue"),
        ("runLoopInPool", "pool-run-loops", "pool-waits"), ("sleep", "sleep", "timer"),
        ("fsync", "fsync", "file-write"), ("fileRead", "file-read", "fifo"),
        ("fileWrite", "file-write", "pipe-write"), ("nameResolution", "silent-server", "connect-tcp"),
        ("socket", "connect-host", "connect-tcp"), ("childPipe", "child-full-pipe", "child-process"),
        ("child", "child-process", "pipe-of-child"), ("pipe", "pipe-of-child", "pipe-read"),
        ("json", "json", "between-json"), ("regex", "regex", "text-search"), ("image", "image", "image-copy"),
        ("contention", "starved", "beside-a-rival"), ("quota", "throttled", "starved"),
        ("paging", "paging", "file-read"),
    ]

    /// The scenario, whose report has to say what to do, or not to, if it is in ``adviceCases``.
    var judgedByAdvice: Scenario {
        var judged = self
        if let own = Self.adviceCases.first(where: { $0.right == name }) {
            judged.expected?.advice = own.rule
        } else if Self.adviceCases.contains(where: { $0.near == name }) {
            judged.expected?.advice = ExpectedReport.noAdvice
        }
        return judged
    }

    static let adviceScenarios: [Scenario] = advisedScenarios + curedScenarios

    private static let advisedScenarios: [Scenario] = [
        .stalling(
            "task-semaphore", "a task on the main actor waits for a semaphore", times: 2,
            .main(.mainQueue, in: "waitForTheSemaphore(for:)", lock: .dispatchSemaphore)
        ) { context in
            await Task { @MainActor in DrivenLoop.time { waitForTheSemaphore(for: context.stall) } }.value
        },
        .inMainLoop(
            "connect-host", "connect(2) to a port of the machine's own network address, whose queue is full",
            .main(.mainQueue, in: "connectTo(_:)", cause: "io", call: "connect("),
            with: { BusyServer(.host(try BusyServer.hostAddress()), for: $0.stall) }
        ) { server, _ in connectTo(server) },
        .inMainLoop(
            "file-read", "a timer reads a file that is not in memory",
            .main(.timer, in: "readTheBlocks(of:for:)", call: "pread64(/"),
            with: { try ScratchFile(megabytes: 128, in: $0.directory) }, end: { $0.close() }, readTheBlocks),
        .inMainLoop(
            "file-write", "a source0 writes a file, whose blocks have to reach the disk",
            .main(.source0, in: "writeTheBlocks(of:for:)", cause: "io", call: "pwrite64(/"),
            with: { try ScratchFile(megabytes: 4, in: $0.directory) }, end: { $0.close() }, writeTheBlocks),
        .inMainLoop(
            "pipe-write", "a timer writes to a full pipe",
            .main(.timer, in: "HolderActivity.writeSlowly(for:)", cause: "io", call: "write(pipe:")
        ) { HolderActivity.writing.run(for: $0) },
        .inMainLoop(
            "child-full-pipe", "a timer waits for a child that waits until its pipe is read",
            .main(.timer, in: "PeerProcess.finish()", cause: "syscall").waiting(for: .child, in: "write"),
            with: { context in
                let connection = try PeerConnection(STALLS_PEER_FILLER, in: context, for: .zero) { pipe(&$0) }
                NamedThread.start("late-reader", after: context.stall) { stalls_read_all(connection.descriptor) }
                return connection.peer
            }
        ) { peer, _ in peer.finish() },
        .inMainLoop("json", "a timer decodes JSON", .main(.timer, in: "decodeTheTable(_:for:)", cause: "cpu")) {
            decodeTheTable(largeTable, for: $0)
        },
        .inMainLoop(
            "between-json", "a timer computes for longer than it decodes JSON",
            .main(.timer, in: "spinTheCPU(for:)", cause: "cpu")
        ) { duration in
            let end = SuspendingClock.now + duration
            while case let left = SuspendingClock.now.duration(to: end), left > .zero {
                decodeTheTable(Data("[]".utf8), for: .milliseconds(5))
                spinTheCPU(for: min(left, .milliseconds(60)))
            }
        },
        .inMainLoop(
            "regex", "a source0 matches a regular expression with nested repetitions",
            .main(.source0, in: "matchTheText(for:)", cause: "cpu"), matchTheText),
        .inMainLoop(
            "text-search", "a source0 looks for a fixed text",
            .main(.source0, in: "searchTheText(for:)", cause: "cpu"), searchTheText),
        .inMainLoop(
            "image", "a main-queue block decodes a picture",
            .main(.mainQueue, in: "Picture.decode(for:)", cause: "cpu"), with: { _ in try Picture() }
        ) { $0.decode(for: $1) },
        .inMainLoop(
            "image-copy", "a main-queue block copies a picture",
            .main(.mainQueue, in: "Picture.copy(for:)", cause: "cpu"), with: { _ in try Picture() }
        ) { $0.copy(for: $1) },
        .inMainLoop(
            "beside-a-rival", "a timer computes while another thread computes on another CPU",
            .main(.timer, in: "spinTheCPU(for:)", cause: "cpu"),
            with: { _ in Competitors(count: 1, sharesTheCPU: false) }, end: { $0.stop() }
        ) { _, stall in spinTheCPU(for: stall) },
    ]

    /// A scenario in which the advice of a rule was followed: the loop gets the same done, and does not stall.
    private static func cured(
        _ rule: String, _ summary: String, _ run: @escaping @Sendable (ScenarioContext, Duration) async throws -> Void
    ) -> Scenario {
        .quiet("cured-" + rule, summary) { context in try await run(context, context.threshold * 2) }
    }

    /// A scenario in which the work of a stall was moved off the loop.
    private static func moved<Resource: Sendable>(
        _ rule: String, _ summary: String, _ make: @escaping @Sendable (ScenarioContext, Duration) throws -> Resource,
        _ work: @escaping @Sendable (Resource, Duration) -> Void
    ) -> Scenario {
        cured(rule, "another thread " + summary) { context, stall in
            let resource = try make(context, stall)
            await MainLoop.untilDone { done in
                DispatchQueue.global().async {
                    work(resource, stall)
                    done()
                }
            }
        }
    }

    private static func moved(
        _ rule: String, _ summary: String, megabytes: Int, isDirty: Bool = false,
        _ work: @escaping @Sendable (ScratchFile, Duration) -> Void
    ) -> Scenario {
        moved(
            rule, summary,
            { context, _ in try ScratchFile(megabytes: megabytes, isDirty: isDirty, in: context.directory) }
        ) { file, stall in
            work(file, stall)
            file.close()
        }
    }

    private static let curedScenarios: [Scenario] = [
        cured("selfDeadlock", "a function that holds a lock calls one that expects it to be held") { _, _ in
            let lock = PthreadLock()
            _ = await DrivenLoop.main.source0 {
                lock.acquire()
                spinTheCPU(for: .milliseconds(1))
                lock.release()
            }
        },
        cured("lockOrder", "two threads take two locks in the same order, a thousand times") { _, _ in
            let (first, second) = (PthreadLock(), PthreadLock())
            let takeBoth: @Sendable () -> Void = {
                for _ in 0..<1_000 {
                    first.acquire()
                    second.pass()
                    first.release()
                }
            }
            let other = Task.detached { takeBoth() }
            _ = await MainLoop.timer(takeBoth)
            await other.value
        },
        cured("ownerWaits", "the owner of a lock sleeps before it takes it") { _, stall in
            let lock = PthreadLock()
            let owner = Task.detached {
                sleepTooLong(for: stall)
                lock.pass()
            }
            _ = await MainLoop.mainQueue { waitForTheLock(lock) }
            await owner.value
        },
        cured("semaphoreInTask", "a task on the main actor awaits a continuation") { _, stall in
            await Task { @MainActor in
                await withCheckedContinuation { reply in
                    DispatchQueue.global().asyncAfter(deadline: .now() + stall.seconds) { reply.resume() }
                }
            }.value
        },
        cured("runLoopInPool", "run loops have threads of their own, and a global queue is watched") { context, stall in
            try await context.warmUp(.globalQueue(.utility, label: "utility"))
            var threads: [LoopThread] = []
            for index in 0..<20 { threads.append(await LoopThread.start("connection-\(index)", LoopThread.runForever)) }
            await pause(stall)
            for thread in threads { await thread.stop() }
        },
        cured("sleep", "a timer fires after the time of a sleep") { _, stall in
            await MainLoop.untilDone { DispatchQueue.main.asyncAfter(deadline: .now() + stall.seconds, execute: $0) }
        },
        moved("fsync", "calls fsync(2) of a large file", megabytes: 64, isDirty: true, synchronize),
        moved("fileRead", "reads a file that is not in memory", megabytes: 128, readTheBlocks),
        moved("fileWrite", "writes a file, whose blocks have to reach the disk", megabytes: 4, writeTheBlocks),
        moved("nameResolution", "asks a name server that never answers", { _, _ in SilentServer() }, lookUpAName),
        moved("socket", "connects to a port whose queue is full", { BusyServer(.tcp, for: $1) }) { server, _ in
            connectTo(server)
        },
        cured("childPipe", "a child's output is read to its end before the wait for the child") { context, _ in
            let connection = try PeerConnection(STALLS_PEER_FILLER, in: context, for: .zero) { pipe(&$0) }
            _ = await MainLoop.timer {
                stalls_read_all(connection.descriptor)
                connection.peer.finish()
            }
        },
        cured("child", "a child has a termination handler") { _, stall in
            await MainLoop.untilDone { done in
                let child = Process()
                child.executableURL = URL(fileURLWithPath: "/bin/sleep")
                child.arguments = ["\(stall.seconds)"]
                child.terminationHandler = { _ in done() }
                if (try? child.run()) == nil { done() }
            }
        },
        cured("pipe", "a child's pipe has a readability handler") { context, stall in
            let connection = try PeerConnection(STALLS_PEER_WRITER, in: context, for: stall) { pipe(&$0) }
            defer { connection.peer.finish() }
            let end = FileHandle(fileDescriptor: connection.descriptor, closeOnDealloc: true)
            await MainLoop.untilDone { done in
                end.readabilityHandler = { end in
                    _ = end.availableData
                    end.readabilityHandler = nil
                    done()
                }
            }
        },
        moved("json", "decodes JSON", { _, _ in largeTable }) { decodeTheTable($0, for: $1) },
        moved("regex", "matches a regular expression", { _, _ in }) { _, stall in matchTheText(for: stall) },
        moved("image", "decodes a picture", { _, _ in try Picture() }) { $0.decode(for: $1) },
        cured("contention", "nine nice threads compute on the CPU to which the main thread is bound") { context, _ in
            let competitors = Competitors(count: 9, isNice: true)
            // Without the nice values, a quarter of the threshold on a tenth of a CPU is a stall of 2.5 thresholds.
            _ = await MainLoop.timer { competitors.run { computeAndSleep(for: context.threshold / 2) } }
        },
        cured("quota", "the CPU quota of the main thread's cgroup is large") { context, _ in
            let group = try QuotaGroup(share: 2)
            _ = await MainLoop.timer { group.enter() }
            // With the quota of the scenario throttled, a quarter of the threshold takes five.
            _ = await MainLoop.timer { computeAndSleep(for: context.threshold / 2) }
            _ = await MainLoop.timer { group.leave() }
        },
        moved("paging", "touches the pages of a mapped file that is not in memory", megabytes: 128, touchThePages),
    ]
}
