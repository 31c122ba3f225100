import LinuxSupport
import StackCapture
import StallReports

/// The samples of one thread of a loop.
struct ProfileTrack {
    typealias State = StallReport.ThreadState

    /// Equal samples, one after another.
    struct Run {
        /// When the first of them was taken, in nanoseconds since the begin of the profile.
        let at: UInt64
        let stack: Int?
        let state: State
        /// Why the stack is missing or incomplete; `nil` if it is complete.
        let reason: String?
        let isComplete: Bool
        let method: CapturedStack.Method?
        var count = 1
        /// Twice the number of passes that they stand for: those between two samples count half for each.
        var halfPasses: Int

        var passes: Double { Double(halfPasses) / 2 }
    }

    struct Sample {
        /// When it was taken, in nanoseconds since the begin of the profile.
        var at: UInt64
        var state: State
        var stack: Result<CapturedStack, CaptureFailure>
    }

    let label: String
    let kind: LoopKind
    /// The loop's threshold, in nanoseconds.
    let threshold: UInt64
    /// The thread that was sampled last; `nil` if there was none.
    var thread: ProfiledThread?
    private(set) var runs: [Run] = []
    private(set) var samples = 0
    /// The number of samples that were not taken, because the thread had been stopped for its whole budget.
    private(set) var skipped = 0
    /// The number of those since the last sample.
    private var pending = 0
    private var lastRun: Int?
    /// The number of passes in which the thread was there.
    var passes: Int { samples + skipped }
    /// Whether the thread was sampled because it may be a pool's.
    var isOfPool: Bool { kind == .globalQueue || kind == .cooperativePool }
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

    mutating func add(_ sample: Sample, in list: ImageList, _ limits: inout ProfileLimits) {
        samples += 1
        let halves = 2 + pending
        if let lastRun { runs[lastRun].halfPasses += pending }
        pending = 0
        let captured = try? sample.stack.get()
        let stack = captured.flatMap { index(of: $0, in: list, &limits) }
        let reason = captured != nil && stack == nil ? ProfileLimits.unkeptStack : sample.stack.reason
        let key = RunKey(stack: stack, state: sample.state, reason: reason)
        if let last = runs.indices.last, runIndices[key] == last { return extend(last, halves) }
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

    /// Lets the samples around one that was not taken count for it; else waits, which cost no stop, would be favored.
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
        let key = stack.frames.map { $0.lookupAddress << 2 | $0.kind.rawValue }
        if let known = stacks[key] { return known }
        guard limits.takeStack(ofFrames: stack.frames.count) else { return nil }
        let index = tables.stack(stack, in: list)
        stacks[key] = index
        return index
    }
}

/// What a profile may keep, over all of its threads, so that its answer stays below the longest one: a run takes some
/// 230 bytes, a frame with its name 250, and its place in a stack 6.
struct ProfileLimits {
    static let runs = 16_000
    static let stacks = 2_000
    static let frames = 100_000
    static let unkeptStack = "the profile has too many different stacks"

    private var runsLeft = Self.runs
    private var stacksLeft = Self.stacks
    private var framesLeft = Self.frames
    /// The number of samples whose stacks were not kept.
    private(set) var unkept = 0

    /// Takes the room for a run; `false` if there is none.
    mutating func takeRun() -> Bool {
        guard runsLeft > 0 else { return false }
        runsLeft -= 1
        return true
    }

    /// Takes the room for a stack; `false`, and a count, if there is none.
    mutating func takeStack(ofFrames count: Int) -> Bool {
        guard stacksLeft > 0, framesLeft >= count else {
            unkept += 1
            return false
        }
        stacksLeft -= 1
        framesLeft -= count
        return true
    }
}

final class ProfiledThread {
    let identity: ThreadIdentity
    var budget = StopBudget()
    /// The time before which the thread is not stopped, in monotonic nanoseconds: it did not answer the last stop.
    var nextStopAllowed: UInt64 = 0
    /// The kernel's times when the profile first saw the thread; `nil` if they are not known.
    private let first: ThreadReading?
    /// The kernel's times at the end of the profile; `nil` if they are not known.
    private var final: ThreadReading?
    private let files: ThreadProc?
    /// The last stack of the thread, captured while it waited, and its number of switches before that.
    private var last: (stack: CapturedStack, switches: UInt64)?

    init(_ id: Int32) {
        identity = ThreadIdentity(id)
        files = ThreadProc(thread: id, files: [.status])
        first = ThreadProc(thread: id)?.read()
    }

    func end() { final = ThreadProc(thread: identity.id)?.read() }

    /// The time on a CPU since the profile first saw the thread, in nanoseconds; `nil` if it is not known.
    var onCPU: UInt64? { grown(\.onCPU) }

    /// The time in which the thread waited for a CPU since then, in nanoseconds; `nil` if it is not known.
    var runQueue: UInt64? { final?.showsRunQueue == true ? grown(\.runQueue) : nil }

    private func grown(_ value: (ThreadReading) -> UInt64) -> UInt64? {
        guard let first, let final, value(final) >= value(first) else { return nil }
        return value(final) - value(first)
    }

    /// Returns the thread's state; `nil` if the thread has ended, or the system does not show it.
    func activity() -> SwitchCounts? { files?.switches.flatMap { $0.state == 0 ? nil : $0 } }

    /// Returns the last stack if the thread has provably not run since it was captured.
    func unchangedStack(_ activity: SwitchCounts) -> CapturedStack? {
        guard activity.isWaiting, let last, last.switches == activity.switches else { return nil }
        return last.stack
    }

    func remember(_ stack: CapturedStack?, _ activity: SwitchCounts?) {
        last = nil
        if let stack, stack.method == .read, let activity, activity.isWaiting, let switches = activity.switches {
            last = (stack, switches)
        }
    }
}

extension SwitchCounts {
    /// Whether the thread waits in the kernel.
    var isWaiting: Bool { state == UInt8(ascii: "S") || state == UInt8(ascii: "D") }

    /// The number of times that the thread has left the CPU; `nil` if the system does not show it.
    fileprivate var switches: UInt64? { voluntary.flatMap { voluntary in involuntary.map { voluntary &+ $0 } } }
}
