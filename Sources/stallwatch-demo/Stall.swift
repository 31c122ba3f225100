import Foundation
import StallWatch

struct Stall: Sendable {
    let name: String
    let summary: String
    let loop: String
    /// Stalls, and returns when that is over.
    let run: @Sendable (StallMonitor) async throws -> Void

    init(
        _ name: String, _ summary: String, loop: String = "main",
        run: @escaping @Sendable (StallMonitor) async throws -> Void
    ) {
        self.name = name
        self.summary = summary
        self.loop = loop
        self.run = run
    }

    /// A stall of the main run loop, for 600 ms.
    private init(_ name: String, _ summary: String, _ work: @escaping @Sendable (Duration) throws -> Void) {
        self.init(name, summary) { _ in try await MainActor.run { try work(.milliseconds(600)) } }
    }

    static let all: [Stall] = [
        Stall("cpu", "the main thread computes", compute),
        Stall("starved", "the main thread computes while eight other threads for each CPU do", computeAmongRivals),
        Stall("paging", "the main thread uses a mapped file that is not in memory", useMappedFile),
        Stall("sleep", "the main thread sleeps", sleepTooLong),
        Stall("lock", "the main thread waits for a lock that another thread holds", waitForLock),
        Stall("deadlock", "the main thread and another one want each other's locks", waitForEachOther),
        Stall("file", "the main thread flushes a file to the disk", flushFile),
        Stall("child", "the main thread waits for a child process", waitForChild),
        Stall("connect", "the main thread connects to a server that is busy", connectToBusyServer),
        Stall("queue", "a block of a serial queue sleeps", loop: "storage", run: blockQueue),
        Stall("task-pool", "tasks that wait for a semaphore occupy all threads", loop: "tasks", run: blockTaskPool),
        Stall("saturation", "short blocks keep the main thread busy all the time", run: saturateMainLoop),
        Stall("spinning", "a loop runs in a mode without sources, which returns at once", loop: "empty", run: spinLoop),
        Stall("mode-starvation", "a loop tracks, and a timer waits", loop: "tracker", run: starveDefaultMode),
        Stall("overdue", "an operation waits for a reply that comes late", loop: "GET /feed", run: awaitLateReply),
    ]
}

extension Duration {
    var seconds: Double { self / .seconds(1) }
}
