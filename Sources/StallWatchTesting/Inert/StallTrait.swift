public import StallWatch
public import Testing

/// A trait that runs the test and finds no stalls, because StallWatch supports Linux only.
public struct StallTrait: TestTrait, SuiteTrait, TestScoping {
    /// Whether the trait applies to the tests of nested suites; always `true`.
    public var isRecursive: Bool { true }

    /// Runs a test.
    ///
    /// - Parameters:
    ///   - test: The test.
    ///   - testCase: The test's case.
    ///   - function: The code to run.
    /// - Throws: The errors of `function`.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await function()
    }
}

extension Trait where Self == StallTrait {
    /// Returns a trait that finds no stalls on this platform.
    ///
    /// - Parameters:
    ///   - threshold: The shortest stall that would fail the test on Linux.
    ///   - loops: The loops to watch.
    ///   - baseline: The path of a file with known stalls.
    ///   - sourceLocation: The place of an issue whose function is not in the package.
    /// - Returns: The trait.
    public static func noStalls(
        over threshold: Duration = .milliseconds(100), on loops: [WatchedLoop] = [.main], baseline: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Self { StallTrait() }

    /// Returns a trait that finds no stalls on this platform.
    ///
    /// - Parameters:
    ///   - warn: The shortest stall that would be a warning on Linux.
    ///   - fail: The shortest stall that would fail the test on Linux.
    ///   - loops: The loops to watch.
    ///   - baseline: The path of a file with known stalls.
    ///   - sourceLocation: The place of an issue whose function is not in the package.
    /// - Returns: The trait.
    public static func stallBudget(
        warn: Duration, fail: Duration, on loops: [WatchedLoop] = [.main], baseline: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Self { StallTrait() }
}
