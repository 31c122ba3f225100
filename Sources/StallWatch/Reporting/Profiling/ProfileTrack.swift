import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

/// The samples of one thread of a loop.
struct ProfileTrack {
    /// What a thread was doing.
    ///
    /// The raw values are the words of `threadState` in the answer.
    enum State: String, Hashable {
        case running, blocked, idle
    }

    /// Equal samples, one after another.
    struct Run {
        /// When the first of them was taken, in nanoseconds since the begin of the profile.
        let at: UInt64
        /// Index into the tables' stacks; `nil` if there is no stack.
        let stack: Int?
        let state: State
        /// Why the stack is missing or incomplete; `nil` if it is complete.
        let reason: String?
        let isComplete: Bool
        let method: CapturedStack.Method?
        /// The number of samples.
        var count = 1
        /// Twice the number of passes that they stand for: those between two samples count half for each.
        var halfPasses: Int

        /// The number of passes that they stand for.
        var passes: Double { Double(halfPasses) / 2 }
    }

    /// A sample of the thread.
    struct Sample {
        /// When it was taken, in nanoseconds since the begin of the profile.
        var at: UInt64
        var state: State
        var stack: Result<CapturedStack, CaptureError>
    }

    let label: String
    let kind: LoopKind
    /// The loop's threshold, in nanoseconds.
    let threshold: UInt64
    /// The thread that was sampled last; `nil` if there was none.
    var thread: ProfiledThread?
    private(set) var runs: [Run] = []
    private(set) var samples = 0
    /// The number of samples that were not taken, because the thread had been stopped for its whole allowance.
    private(set) var skipped = 0
    /// The number of those since the last sample.
    private var pending = 0
    /// The run with the last sample.
    private var lastRun: Int?
    /// The number of passes in which the thread was there.
    var passes: Int { samples + skipped }
    private(set) var tables: ReportTables
    private var images = ImageList()
    /// The index of each stack, by its addresses.
    private var stacks: [[UInt64]: Int] = [:]
    private var runIndices: [RunKey: Int] = [:]

    private struct RunKey: Hashable {
        let stack: Int?
        let state: State
        let reason: String?
    }

    init(of loop: LoopMonitor, inApp: InAppSettings) {
        label = loop.label
        kind = loop.source.kind
        threshold = loop.threshold
        tables = ReportTables(inApp: inApp)
    }

    /// Adds a sample.
    ///
    /// - Parameters:
    ///   - sample: The sample.
    ///   - list: The images that were mapped when its stack was captured.
    ///   - limits: What the profile may still keep.
    mutating func add(_ sample: Sample, in list: ImageList, _ limits: inout ProfileLimits) {
        samples += 1
        let halves = 2 + pending
        if let lastRun { runs[lastRun].halfPasses += pending }
        pending = 0
        let captured = try? sample.stack.get()
        var stack: Int?
        var reason: String?
        switch sample.stack {
        case .success(let captured):
            stack = index(of: captured, in: list, &limits)
            reason = captured.incompleteReason ?? captured.missingAsyncCallersReason
            if stack == nil { reason = ProfileLimits.unkeptStack }
        case .failure(let error): reason = error.description
        }
        let key = RunKey(stack: stack, state: sample.state, reason: reason)
        if let last = runs.indices.last, runIndices[key] == last {
            return extend(last, halves)
        }
        // Beyond the limit, the order is lost, and not the sample.
        if !limits.takeRun(), let known = runIndices[key] { return extend(known, halves) }
        runIndices[key] = runs.count
        lastRun = runs.count
        runs.append(
            Run(
                at: sample.at, stack: stack, state: sample.state, reason: reason,
                isComplete: captured?.isComplete ?? false, method: captured?.method, halfPasses: halves)
        )
    }

    /// Counts a sample that was not taken.
    ///
    /// The samples before and after it count for it. To leave it out would favor what costs the thread no stop: its waits.
    mutating func skip() {
        skipped += 1
        pending += 1
    }

    /// Ends the samples: the last one counts for those that were not taken after it.
    mutating func finish() {
        if let lastRun { runs[lastRun].halfPasses += 2 * pending }
        pending = 0
    }

    private mutating func extend(_ run: Int, _ halves: Int) {
        runs[run].count += 1
        runs[run].halfPasses += halves
        lastRun = run
    }

    /// Returns the index of a stack; `nil` if the profile has too many stacks already.
    private mutating func index(
        of stack: CapturedStack, in list: ImageList, _ limits: inout ProfileLimits
    ) -> Int? {
        if list != images {
            // The same addresses may be other functions now.
            stacks = [:]
            images = list
        }
        // User addresses have fewer than 60 bits.
        let key = stack.frames.map { frame in
            let kind: UInt64 =
                switch frame.kind {
                case .code: 0
                case .asyncCaller: 1
                case .taskStart: 2
                }
            return frame.lookupAddress << 2 | kind
        }
        if let known = stacks[key] { return known }
        guard limits.takeStack(ofFrames: stack.frames.count) else { return nil }
        let index = tables.stack(stack, in: list)
        stacks[key] = index
        return index
    }
}
