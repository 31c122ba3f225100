import StallWatch

/// A stall with what its report has to say.
struct LabeledStall: Sendable {
    /// The loop that stalls.
    enum Loop: String, Sendable {
        case main, nio, queue
    }

    /// What it calls into.
    var label: String
    /// The functions that may be blamed, by base name: one, except where the optimizer merges functions.
    var culprits: [String]
    /// The source file of those functions.
    var file: String
    var causes: Set<StallReport.CauseKind>
    var lock: StallReport.LockKind?
    var loop: Loop
    /// Runs on the loop's thread, or makes the loop run what stalls.
    var body: @Sendable () throws -> Void

    /// Labels a stall that calls into `label` and runs `body` on the loop's thread.
    ///
    /// `culprit` is the base name of the function to blame. A release build may merge it with an identical function and
    /// blame `merged`, its caller, instead. Each of `causes` is right; `lock` is the kind for the cause `lock`.
    init(
        _ label: String, culprit: String, orCaller merged: String? = nil, _ causes: Set<StallReport.CauseKind>,
        lock: StallReport.LockKind? = nil, on loop: Loop = .main, file: String = #filePath,
        _ body: @escaping @Sendable () throws -> Void
    ) {
        self.label = label
        culprits = [culprit] + (merged.map { [$0] } ?? [])
        self.file = file
        self.causes = causes
        self.lock = lock
        self.loop = loop
        self.body = body
    }
}

extension Set<StallReport.CauseKind> {
    /// Computing; on a busy machine the thread may wait for a CPU most of the time.
    static let computing: Self = [.cpu, .cpuContention, .throttled]
    static let waitingForLock: Self = [.lock]
    static let sleeping: Self = [.sleep]
    /// Reading files, from the page cache or from a disk.
    static let readingFiles: Self = [.cpu, .cpuContention, .throttled, .io, .paging]
}
