import StallReports

/// The output of `profile --format json`.
struct ProfileReport: Encodable {
    let durationMilliseconds: Double
    let hertz: Int
    let samples: Int
    let missedSamples: Int
    let omittedThreads: Int
    let unkeptStacks: Int
    let process: String
    let pid: Int32
    let threads: [Thread]

    /// One thread of a loop.
    struct Thread: Encodable {
        let loop: String
        let thread: StallReport.ThreadDescription?
        let runningMilliseconds: Double
        let blockedMilliseconds: Double
        let idleMilliseconds: Double
        /// By the kernel's clock.
        let onCPUMilliseconds: Double?
        let runQueueMilliseconds: Double?
        let heldMilliseconds: Double
        let skippedSamples: Int
        let missingStacks: [ProfileTrees.MissingStacks]
        let tree: TreeReport
    }

    init(_ trees: ProfileTrees) {
        let profile = trees.profile
        durationMilliseconds = profile.durationMilliseconds
        hertz = profile.hertz
        samples = profile.passes
        missedSamples = profile.missedPasses
        omittedThreads = profile.omittedThreads
        unkeptStacks = profile.unkeptStacks
        process = profile.threads.first?.report.process.name ?? ""
        pid = profile.threads.first?.report.process.pid ?? 0
        threads = zip(profile.threads, trees.trees).map { thread, tree in
            let times = Dictionary(
                ProfileTrees.states(thread.report).map { ($0.state, $0.milliseconds) }, uniquingKeysWith: +)
            return Thread(
                loop: thread.report.loop.label, thread: thread.report.loop.thread,
                runningMilliseconds: (times["running"] ?? 0).toMicroseconds,
                blockedMilliseconds: (times["blocked"] ?? 0).toMicroseconds,
                idleMilliseconds: (times["idle"] ?? 0).toMicroseconds,
                onCPUMilliseconds: thread.onCPUMilliseconds, runQueueMilliseconds: thread.runQueueMilliseconds,
                heldMilliseconds: thread.heldMilliseconds, skippedSamples: thread.skippedSamples,
                missingStacks: ProfileTrees.missingStacks(thread.report),
                tree: TreeReport(tree, minimumPercent: trees.minimumPercent)
            )
        }
    }
}
