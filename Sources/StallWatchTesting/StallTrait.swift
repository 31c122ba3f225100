import LinuxSupport
import StallReports
public import StallWatch
import Synchronization
public import Testing

/// A trait that records an issue for each stall of a test.
///
/// Create one with ``Testing/Trait/noStalls(over:on:baseline:sourceLocation:)`` or
/// ``Testing/Trait/stallBudget(warn:fail:on:baseline:sourceLocation:)``. On a suite it applies to each of its tests, and a
/// test's own trait replaces that of its suite.
public struct StallTrait: TestTrait, SuiteTrait, TestScoping {
    private let budget: StallBudget
    private let loops: [WatchedLoop]
    private let baseline: String?
    private let sourceLocation: SourceLocation

    /// Whether the trait applies to the tests of nested suites; always `true`.
    public var isRecursive: Bool { true }

    init(_ budget: StallBudget, _ loops: [WatchedLoop], baseline: String?, _ sourceLocation: SourceLocation) {
        self.budget = budget
        self.loops = loops
        self.baseline = baseline
        self.sourceLocation = sourceLocation
    }

    /// Runs a test while its loops are watched, then records its stalls.
    ///
    /// - Parameters:
    ///   - test: The test.
    ///   - testCase: The test's case.
    ///   - function: The code to run.
    /// - Throws: The errors of `function`.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let scope = StallScope(
            loops: loops, budget: budget, function: WatchedFunction(test), location: sourceLocation,
            baseline: readBaseline(baseline, at: sourceLocation)
        )
        guard await isWatching(scope, at: sourceLocation) else { return try await function() }
        // The trait of the suite, if this one is the test's own.
        StallScope.current?.replace()
        let result = await Result { try await StallScope.$current.withValue(scope) { try await function() } }
        for finding in await SharedMonitor.shared.leave(scope) { finding.record(elsewhere: sourceLocation) }
        try result.get()
    }
}

extension Trait where Self == StallTrait {
    /// Fails a test for each stall that lasts for the given time or longer.
    ///
    /// ```swift
    /// @Test(.noStalls(over: .milliseconds(100))) func opensQuickly() async { … }
    /// ```
    ///
    /// Time in which the machine kept the code from running does not count: waiting for a CPU, CPU time that a host took
    /// away, and a CPU quota that was used up. Each issue is at the line of the function to inspect first, if that is in
    /// the package, and has the report as JSON and the stacks as text attached.
    ///
    /// A stall belongs to the test whose function, or a closure in it, is on the stack, async callers included. A stall
    /// without a test on its stack belongs to the only test with such a trait that ran when it began. If several ran, it
    /// is an issue of the run, and its text names them: run such tests one after another.
    ///
    /// Each loop gets an empty block four times per threshold, and each test costs some 100 microseconds. A test that
    /// takes longer than the threshold waits at its end until its stalls are reported: some milliseconds, and at most 10
    /// seconds.
    ///
    /// - Parameters:
    ///   - threshold: The shortest stall that fails the test, 10 ms or more.
    ///   - loops: The loops to watch: the main actor's by default.
    ///   - baseline: The path of a file with known stalls, which do not fail the test until they expire; `nil` for the one
    ///     that the environment variable `STALLWATCH_BASELINE` names, if it is set. `stallwatch baseline update` writes it.
    ///   - sourceLocation: The place of an issue whose function is not in the package.
    /// - Returns: The trait.
    public static func noStalls(
        over threshold: Duration = .milliseconds(100), on loops: [WatchedLoop] = [.main], baseline: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Self {
        StallTrait(StallBudget(fail: threshold), loops, baseline: baseline, sourceLocation)
    }

    /// Warns of a test's stalls, and fails it for longer ones, like ``noStalls(over:on:baseline:sourceLocation:)``.
    ///
    /// - Parameters:
    ///   - warn: The shortest stall that is an issue with the severity of a warning, 10 ms or more.
    ///   - fail: The shortest stall that fails the test.
    ///   - loops: The loops to watch: the main actor's by default.
    ///   - baseline: The path of a file with known stalls; `nil` for the one that `STALLWATCH_BASELINE` names.
    ///   - sourceLocation: The place of an issue whose function is not in the package.
    /// - Returns: The trait.
    public static func stallBudget(
        warn: Duration, fail: Duration, on loops: [WatchedLoop] = [.main], baseline: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Self {
        StallTrait(StallBudget(warn: warn, fail: fail), loops, baseline: baseline, sourceLocation)
    }
}

/// Returns a baseline, or records an issue if its file is missing or damaged.
func readBaseline(_ path: String?, at location: SourceLocation) -> StallBaseline? {
    do throws(StallWatchError) {
        return try BaselineFiles.baseline(at: path)
    } catch {
        Issue.record(Comment(rawValue: error.description), sourceLocation: location)
        return nil
    }
}

/// Begins to watch the loops of a scope, or records an issue: a guard that does not watch must not pass.
func isWatching(_ scope: StallScope, at location: SourceLocation) async -> Bool {
    do throws(StallWatchError) {
        try await SharedMonitor.shared.enterFromTask(scope)
        return true
    } catch {
        recordUnwatched(error, at: location)
        return false
    }
}

/// Records that the loops of a scope cannot be watched.
func recordUnwatched(_ error: StallWatchError, at location: SourceLocation) {
    Issue.record(Comment(rawValue: "stalls cannot be watched here: \(error)"), sourceLocation: location)
}

extension Result where Failure == any Error {
    /// Runs the body and keeps its result or its error.
    init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}

/// A test, or a part of one, in which stalls are watched.
final class StallScope: Sendable {
    /// The loops that it watches, each with a label of its own.
    let loops: [WatchedLoop]
    let labels: Set<String>
    let budget: StallBudget
    /// The function that the scope belongs to, to find it on a stack; `nil` for a check of one thread.
    let function: WatchedFunction?
    /// Where an issue is recorded if the stall has no place in the package.
    let location: SourceLocation
    let baseline: StallBaseline?
    let began = Timestamp(wallClockNanoseconds: wallClockNow())
    /// The outermost scope that this one is part of: that of the test.
    private let outermost: StallScope?
    private let beganMonotonic = monotonicNow()

    private struct State {
        var ended: Timestamp?
        var isReplaced = false
        var findings: [StallFinding] = []
    }
    private let state = Mutex(State())

    /// The scope of the test that runs in this task, so that a test's own trait replaces its suite's.
    @TaskLocal static var current: StallScope?

    init(
        loops: [WatchedLoop], budget: StallBudget, function: WatchedFunction?, location: SourceLocation,
        baseline: StallBaseline?
    ) {
        self.loops = loops
        labels = Set(loops.map(\.label))
        self.budget = budget
        self.function = function
        self.location = location
        self.baseline = baseline
        outermost = Self.current.map { $0.outermost ?? $0 }
    }

    /// The identity of the test, or of the outermost check.
    var root: ObjectIdentifier { ObjectIdentifier(outermost ?? self) }

    /// The threshold at which the monitor has to notice a stall.
    ///
    /// A heartbeat may begin late by a quarter of it, so it is half of the shortest stall that matters.
    var threshold: Duration {
        .milliseconds(max(budget.shortest / 2, 5))
    }

    /// Whether it has lasted long enough for a stall that matters.
    var mayHaveStalled: Bool {
        Double(monotonicNow() &- beganMonotonic) / 1_000_000 >= budget.shortest
    }

    /// The end of its code; `nil` while it runs.
    var ended: Timestamp? { state.withLock { $0.ended } }

    /// Whether a scope within it watches the same loops.
    var isReplaced: Bool { state.withLock { $0.isReplaced } }

    /// Notes that a scope within it watches its loops from now on.
    func replace() { state.withLock { $0.isReplaced = true } }

    func end() {
        let now = Timestamp(wallClockNanoseconds: wallClockNow())
        state.withLock { $0.ended = now }
    }

    func add(_ finding: StallFinding) { state.withLock { $0.findings.append(finding) } }

    /// Takes the stalls that were added so far.
    func takeFindings() -> [StallFinding] {
        state.withLock { state in
            defer { state.findings = [] }
            return state.findings
        }
    }
}
