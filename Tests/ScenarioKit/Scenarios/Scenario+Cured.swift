import CStalls
import Dispatch
import Foundation
import Glibc
import StallWatch

extension Scenario {
    /// A scenario in which the advice of a rule was followed: the loop gets the same done, and does not stall.
    private static func cured(
        _ rule: String, _ summary: String, _ run: @escaping @Sendable (ScenarioContext, Duration) async throws -> Void
    ) -> Scenario {
        .quiet("cured-" + rule, summary) { context in try await run(context, context.threshold * 2) }
    }

    /// A scenario in which a lock's owner works before it takes the lock.
    private static func curedOwner(
        _ rule: String, _ summary: String, does work: @escaping @Sendable (Duration) -> Void
    ) -> Scenario {
        cured(rule, summary) { _, stall in
            let lock = PthreadLock()
            let owner = Task.detached {
                work(stall)
                lock.pass()
            }
            _ = await MainLoop.mainQueue { waitForTheLock(lock) }
            await owner.value
        }
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

    static let curedScenarios: [Scenario] = curedLocks + curedCalls + curedWork

    private static let curedLocks: [Scenario] = [
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
        curedOwner("ownerWaits", "the owner of a lock sleeps before it takes it", does: sleepTooLong(for:)),
        cured("semaphoreInTask", "a task on the main actor awaits a continuation") { _, stall in
            await Task { @MainActor in
                await withCheckedContinuation { reply in
                    DispatchQueue.global().asyncAfter(deadline: .now() + stall.seconds) { reply.resume() }
                }
            }.value
        },
        cured("circle", "three threads take three locks in the same order, a thousand times") { _, _ in
            let locks = (0..<3).map { _ in PthreadLock() }
            let takeAll: @Sendable () -> Void = {
                for _ in 0..<1_000 {
                    for lock in locks { lock.acquire() }
                    for lock in locks { lock.release() }
                }
            }
            let others = (0..<2).map { _ in Task.detached { takeAll() } }
            _ = await MainLoop.timer(takeAll)
            for other in others { await other.value }
        },
        cured("inversion", "a background worker computes before it takes a lock") { _, stall in
            let lock = PthreadLock()
            DispatchQueue.global(qos: .background).async {
                spinTheCPU(for: stall)
                lock.pass()
            }
            _ = await MainLoop.mainQueue { waitForTheLock(lock) }
        },
        curedOwner("ownerComputes", "the owner of a lock computes before it takes it", does: spinTheCPU(for:)),
        cured("queue", "a busy queue gets a block that calls back") { _, stall in
            let queue = await DispatchQueue.busy(for: stall)
            await MainLoop.untilDone { queue.async(execute: $0) }
        },
        cured("initializer", "another thread runs an initializer before the loop needs it") { _, stall in
            let once = SlowOnceInit(for: stall)
            await Task.detached { once.run() }.value
            _ = await DrivenLoop.main.source0 { once.run() }
        },
        cured("join", "a thread calls back at its end") { _, stall in
            await MainLoop.untilDone { done in
                Thread.detachNewThread {
                    sleepTooLong(for: stall)
                    done()
                }
            }
        },
        cured("group", "a group calls back when it is empty") { _, stall in
            await MainLoop.untilDone { done in
                let group = DispatchGroup()
                DispatchQueue.global().async(group: group) { sleepTooLong(for: stall) }
                group.notify(queue: .main, execute: done)
            }
        },
        cured("signal", "the thread that would signal calls back") { _, stall in
            await MainLoop.untilDone { done in
                DispatchQueue.global().async {
                    sleepTooLong(for: stall)
                    DispatchQueue.main.async(execute: done)
                }
            }
        },
        moved("fileLock", "waits for a file lock", { HeldFileLock(for: $1, in: $0.directory) }) { lock, _ in
            waitForTheFileLock(lock)
        },
        cured("libraryLock", "another thread lists the libraries while a third one keeps their lock") { _, stall in
            NamedThread.start("lister") { ready in
                withoutActuallyEscaping(ready) { sleepWithLoaderLock(for: stall, ready: $0) }
            }
            await MainLoop.untilDone { done in
                DispatchQueue.global().async {
                    stalls_with_loader_lock({ _ in }, nil)
                    done()
                }
            }
        },
        cured("held", "a reader lets go of a lock before it sleeps") { _, stall in
            let lock = ReadWriteLock()
            NamedThread.start("reader") { ready in
                lock.acquireForReading()
                lock.release()
                ready()
                sleepTooLong(for: stall)
            }
            _ = await MainLoop.timer { lock.pass() }
        },
    ]

    private static let curedCalls: [Scenario] = [
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
        cured("signalHandler", "a dispatch source takes a signal on another queue") { _, stall in
            let before = signal(SIGUSR2, SIG_IGN)
            defer { signal(SIGUSR2, before) }
            let source = DispatchSource.makeSignalSource(signal: SIGUSR2, queue: .global())
            let (calls, call) = AsyncStream<Void>.makeStream()
            source.setEventHandler {
                sleepTooLong(for: stall)
                call.yield()
            }
            source.setRegistrationHandler { kill(getpid(), SIGUSR2) }
            source.resume()
            for await _ in calls { break }
            source.cancel()
        },
        cured("polling", "a callback in place of looking again and again") { _, stall in
            await MainLoop.untilDone { done in
                DispatchQueue.global().asyncAfter(deadline: .now() + stall.seconds, execute: done)
            }
        },
        cured("timeout", "a timer ends what a time limit would") { _, stall in
            await MainLoop.untilDone { done in
                let timer = Timer(timeInterval: stall.seconds, repeats: false) { _ in done() }
                RunLoop.main.add(timer, forMode: .common)
            }
        },
        moved("close", "closes a socket with unsent data", { try UnsentData(for: $1) }) { data, _ in
            closeWithUnsentData(data)
        },
        moved("events", "waits in epoll_wait(2)", { _, _ in }) { _, stall in
            stalls_wait_in_epoll(Int32(stall.milliseconds))
        },
        cured("stream", "a dispatch source reads a pipe when it has data") { _, stall in
            let pipe = BytePipe(emptyFor: stall)
            let (reads, read) = AsyncStream<Void>.makeStream()
            let source = DispatchSource.makeReadSource(fileDescriptor: pipe.readEnd, queue: .main)
            source.setEventHandler {
                pipe.readOne()
                read.finish()
            }
            source.resume()
            for await _ in reads {}
            source.cancel()
            _ = await MainLoop.mainQueue {}
        },
        moved("call", "connects to a socket whose queue is full", { BusyServer(.unix, for: $1) }) { server, _ in
            connectTo(server)
        },
        moved("compute", "computes", { _, _ in }) { _, stall in spinTheCPU(for: stall) },
    ]

    private static let curedWork: [Scenario] = [
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
        cured("runLoopInPool", "run loops have threads of their own, and a global queue is watched") { context, stall in
            try await context.warmUp(.globalQueue(.utility, label: "utility"))
            var threads: [LoopThread] = []
            for index in 0..<20 { threads.append(await LoopThread.start("connection-\(index)", LoopThread.runForever)) }
            await pause(stall)
            for thread in threads { await thread.stop() }
        },
        cured("poolWaits", "three hundred tasks sleep without a thread of the pool") { context, stall in
            try await context.watch(.cooperativePool())
            await pause(context.threshold)
            await withTaskGroup { group in
                for _ in 0..<300 { group.addTask { await pause(stall) } }
            }
        },
        cured("continuation", "a continuation is resumed long before the limit") { context, _ in
            await context.monitor.withLimit(context.threshold * 4, "GET /feed") {
                await withCheckedContinuation { reply in
                    DispatchQueue.global().asyncAfter(deadline: .now() + 0.02) { reply.resume() }
                }
            }
        },
        cured("taskCircle", "a task awaits one that awaits nothing of it") { context, _ in
            await context.monitor.withLimit(context.threshold * 4, "GET /feed") {
                await Task.detached { await pause(.milliseconds(20)) }.value
            }
        },
        cured("longSleep", "the task of a long sleep is canceled") { context, stall in
            await context.monitor.withLimit(context.threshold * 4, "GET /feed") {
                let sleep = Task.detached { try? await Task.sleep(for: stall * 10) }
                sleep.cancel()
                _ = await sleep.value
            }
        },
        cured("heldUp", "a task of the main actor suspends in place of sleeping") { context, stall in
            let other = Task { @MainActor in await pause(stall) }
            await pause(.milliseconds(20))
            await context.monitor.withLimit(context.threshold, "GET /feed") { await useTheMainActor() }
            await other.value
        },
    ]
}
