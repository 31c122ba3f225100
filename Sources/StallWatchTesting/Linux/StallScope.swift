import LinuxSupport
import StallReports
import StallWatch
import Synchronization
import Testing

final class StallScope: Sendable {
    let labels: Set<String>
    let budget: StallBudget
    /// The function that the scope belongs to, to find it on a stack; `nil` for a check of one thread.
    let function: WatchedFunction?
    /// Where an issue is recorded if the stall has no place in the package.
    let location: SourceLocation
    let baseline: StallBaseline?
    let began = Timestamp(wallClockNanoseconds: wallClockNow())
    private let outermost: StallScope?
    private let beganMonotonic = monotonicNow()

    private struct State {
        var ended: Timestamp?
        var isReplaced = false
        var findings: [StallFinding] = []
        var hasLeft = false
        /// None after the end: a scope that is remembered keeps no loop.
        var loops: [WatchedLoop]
    }
    private let state: Mutex<State>

    /// The scope of the test that runs in this task, so that a test's own trait replaces its suite's.
    @TaskLocal static var current: StallScope?

    init(
        loops: [WatchedLoop], budget: StallBudget, function: WatchedFunction?, location: SourceLocation,
        baseline: StallBaseline?
    ) {
        state = Mutex(State(loops: loops))
        labels = Set(loops.map(\.label))
        self.budget = budget
        self.function = function
        self.location = location
        self.baseline = baseline
        outermost = Self.current.map { $0.outermost ?? $0 }
    }

    /// The identity of the test, or of the outermost check.
    var root: ObjectIdentifier { ObjectIdentifier(outermost ?? self) }

    /// Half of the shortest stall that matters, because a heartbeat may begin late by a quarter of it.
    var threshold: Duration {
        .milliseconds(max(budget.shortest / 2, 5))
    }

    /// From which age on, in milliseconds, a scope may have had a timer of a loop that no thread runs.
    private static let shortestUnrun = 500.0

    /// Whether its loops may have stalled meanwhile, or not have been run.
    var mayHaveStalled: Bool {
        Double(monotonicNow() &- beganMonotonic) / 1_000_000 >= min(budget.shortest, Self.shortestUnrun)
    }

    /// The end of its code; `nil` while it runs.
    var ended: Timestamp? { state.withLock { $0.ended } }

    var isReplaced: Bool { state.withLock { $0.isReplaced } }

    func replace() { state.withLock { $0.isReplaced = true } }

    func end() {
        let now = Timestamp(wallClockNanoseconds: wallClockNow())
        state.withLock { $0.ended = now }
    }

    var loops: [WatchedLoop] { state.withLock { $0.loops } }

    /// Whether the findings were taken: what is found now is too late for the test.
    var hasLeft: Bool { state.withLock { $0.hasLeft } }

    /// Adds a finding; returns `false` if it comes too late.
    func add(_ finding: StallFinding) -> Bool {
        state.withLock { state in
            if !state.hasLeft { state.findings.append(finding) }
            return !state.hasLeft
        }
    }

    func takeFindings() -> [StallFinding] {
        state.withLock { state in
            (state.hasLeft, state.loops) = (true, [])
            defer { state.findings = [] }
            return state.findings
        }
    }
}
