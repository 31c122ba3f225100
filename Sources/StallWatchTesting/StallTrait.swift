public import StallWatch
public import Testing

/// A trait that records an issue for each stall of a test.
///
/// Create one with ``Testing/Trait/noStalls(over:on:baseline:sourceLocation:)`` or
/// ``Testing/Trait/stallBudget(warn:fail:on:baseline:sourceLocation:)``. On a suite it applies to each of its tests, and a
/// test's own trait replaces that of its suite. Of two on one test the last one counts. On other
/// platforms than Linux it finds no stalls.
public struct StallTrait: TestTrait, SuiteTrait, TestScoping {
    fileprivate let check: StallCheck

    /// Whether the trait applies to the tests of nested suites; always `true`.
    public var isRecursive: Bool { true }

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
        try await check.run(test, function)
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
    /// is an issue of the run, and its text names them: run such tests one after another. So is one of several cases of a
    /// test that ran then, and one that a test has left behind, if a closure of the test is on the stack.
    ///
    /// A loop with work gets an empty block up to four times per threshold, and each test costs some 100 microseconds. A
    /// test that takes longer than the threshold waits at its end until its stalls are reported: some milliseconds, and
    /// at most 10 seconds.
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
        StallTrait(check: StallCheck(fail: threshold, loops: loops, baseline: baseline, location: sourceLocation))
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
        StallTrait(
            check: StallCheck(warn: warn, fail: fail, loops: loops, baseline: baseline, location: sourceLocation))
    }
}

/// A trait that says what hangs when a test takes too long.
///
/// Create one with ``Testing/Trait/hangDump(after:)``. On a suite it applies to each of its tests. On other platforms than
/// Linux it says nothing.
public struct HangTrait: TestTrait, SuiteTrait, TestScoping {
    fileprivate let check: HangCheck

    /// Whether the trait applies to the tests of nested suites; always `true`.
    public var isRecursive: Bool { true }

    /// Runs a test beside a thread that waits for its end.
    ///
    /// - Parameters:
    ///   - test: The test.
    ///   - testCase: The test's case.
    ///   - function: The code to run.
    /// - Throws: The errors of `function`.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await check.run(test, function)
    }
}

extension Trait where Self == HangTrait {
    /// Prints what hangs when a test has not finished in time: what each thread waits for, who holds the locks, child
    /// processes.
    ///
    /// ```swift
    /// @Test(.hangDump(after: .seconds(30))) func synchronizes() async throws { … }
    /// ```
    ///
    /// It prints once per test, to standard error, while the test hangs, even if the main actor and the task pool are
    /// blocked. The test then goes on, and gets no issue. When it ends, the text and the report with all stacks are
    /// attached to it. A test that does not hang costs a thread that waits. `stallwatch test` does the same for tests
    /// without the trait.
    ///
    /// - Parameter limit: The time after which a test hangs, 10 ms or more; less counts as 10 ms.
    /// - Returns: The trait.
    public static func hangDump(after limit: Duration) -> Self {
        HangTrait(check: HangCheck(limit: max(limit, .milliseconds(10))))
    }
}
