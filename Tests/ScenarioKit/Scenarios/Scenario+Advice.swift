import CStalls
import Dispatch
import Foundation
import Glibc
import StallWatch

extension Scenario {
    /// A rule that says what to do, the stalls that it is right for, and one that looks alike and is another rule's.
    struct AdviceCase {
        let rule: String
        let right: [String]
        let near: String
        /// The same work after the advice was followed, in which nothing stalls.
        let cured: String

        init(_ rule: String, _ right: [String], near: String, cured: String? = nil) {
            (self.rule, self.right, self.near, self.cured) = (rule, right, near, cured ?? "cured-" + rule)
        }
    }

    static let adviceCases: [AdviceCase] = [
        .init("selfDeadlock", ["deadlock-self"], near: "deadlock-two"),
        .init("lockOrder", ["deadlock-two"], near: "deadlock-three"),
        .init("circle", ["deadlock-three", "deadlock-main-queue"], near: "deadlock-two"),
        .init("resumeUnderLock", ["deadlock-cancel"], near: "deadlock-three"),
        .init("inversion", ["priority-inversion", "priority-inversion-queue"], near: "background-owner"),
        .init("ownerWaits", ["lock", "lock-chain", "background-owner", "pool-lock"], near: "mutex-computing"),
        .init("ownerComputes", ["mutex-computing", "mutex-swift-computing", "rwlock-reader"], near: "lock"),
        .init("queue", ["busy-queue", "queue-sync"], near: "lock"),
        .init("initializer", ["dispatch-once", "lazy-global"], near: "lock"),
        .init("join", ["thread-join"], near: "main-queue"),
        .init("semaphoreInTask", ["task-semaphore", "pool-semaphore", "pool-condition"], near: "main-queue"),
        .init("group", ["dispatch-group"], near: "main-queue"),
        .init("signal", ["main-queue", "semaphore", "perform-block"], near: "task-semaphore"),
        .init("fileLock", ["file-lock", "flock-of-child", "record-lock-of-child"], near: "lock"),
        .init("libraryLock", ["stdio-lock", "linker-lock"], near: "pipe-write"),
        .init("held", ["rwlock-readers"], near: "rwlock-reader"),
        .init("signalHandler", ["signal-handler"], near: "usleep"),
        .init("polling", ["polling"], near: "sleep"),
        .init("sleep", ["sleep", "usleep", "source0"], near: "timer"),
        .init("timeout", ["timer"], near: "sleep"),
        .init("fsync", ["fsync"], near: "file-write"),
        .init("fileRead", ["file-read"], near: "fifo"),
        .init("fileWrite", ["file-write"], near: "pipe-write"),
        .init("nameResolution", ["silent-server"], near: "connect-tcp"),
        .init("socket", ["connect-host"], near: "connect-tcp"),
        .init("childPipe", ["child-full-pipe"], near: "child-process"),
        .init("child", ["child-process"], near: "pipe-of-child"),
        .init("pipe", ["pipe-of-child"], near: "pipe-read"),
        .init("close", ["linger"], near: "socket-to-child"),
        .init("events", ["epoll"], near: "timer"),
        .init("stream", ["pipe-read", "fifo", "pipe-write", "socket-to-child"], near: "file-read"),
        .init("call", ["connect", "connect-tcp"], near: "connect-host"),
        .init("json", ["json"], near: "between-json"),
        .init("regex", ["regex"], near: "text-search"),
        .init("image", ["image"], near: "image-copy"),
        .init("compute", ["cpu-spin", "between-json", "text-search", "image-copy", "beside-a-rival"], near: "json"),
        .init("contention", ["starved"], near: "beside-a-rival"),
        .init("quota", ["throttled"], near: "starved"),
        .init("paging", ["paging"], near: "file-read"),
        .init("runLoopInPool", ["pool-run-loops", "pool-run-loops-before"], near: "pool-waits"),
        .init(
            "poolWaits",
            [
                "cooperative-pool-blocked", "global-queue-full", "pool-waits", "pool-waits-before",
                "run-until-pool-timer",
            ], near: "main-queue"),
        .init("poolComputes", ["global-queue-busy"], near: "cpu-spin", cured: "cooperative-pool-busy"),
        .init("pinnedBlocked", ["pool-recv", "pool-resolver", "pool-pipe"], near: "pool-computing"),
        .init("pinnedComputing", ["pool-computing"], near: "cpu-spin"),
        .init("saturation", ["saturated-by-tasks"], near: "cpu-spin", cured: "busy-below-share"),
        .init("ready", ["spinning-descriptor"], near: "spinning-empty-mode", cured: "busy-descriptor"),
        .init(
            "emptyMode", ["spinning-empty-mode", "spinning-common-modes", "spinning-observed-mode"],
            near: "spinning-block", cured: "modal-dialog"),
        .init("resubmit", ["spinning-block"], near: "spinning-descriptor", cured: "busy-timers"),
        .init("mode", ["mode-starvation"], near: "spinning-empty-mode", cured: "mode-starvation-common"),
        .init(
            "notRun", ["not-run", "not-run-ever", "not-run-async-main"], near: "mode-starvation",
            cured: "not-run-start-up"),
        .init(
            "continuation", ["operation-leaked", "operation-group", "operation-stream", "operation-actors"],
            near: "operation-circle"),
        .init("taskCircle", ["operation-circle"], near: "operation-actors"),
        .init("longSleep", ["operation-sleep"], near: "operation-actor-blocked"),
        .init(
            "heldUp",
            [
                "operation-semaphore", "operation-main-actor", "operation-actor-blocked", "operation-async-let",
                "operation-background", "operation-computes",
            ], near: "operation-sleep"),
    ]

    /// The scenario, whose report has to say what to do, if it is in ``adviceCases``.
    var judgedByAdvice: Scenario {
        var judged = self
        if let own = Self.adviceCases.first(where: { $0.right.contains(name) }) { judged.expected?.advice = own.rule }
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
            "polling", "a timer looks every millisecond whether something has happened",
            .main(.timer, in: "lookAgainAndAgain(for:)", cause: "sleep"), lookAgainAndAgain),
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
}
