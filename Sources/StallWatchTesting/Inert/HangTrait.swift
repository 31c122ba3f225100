public import Testing

/// A trait that runs the test and dumps no hang, because StallWatch supports Linux only.
public struct HangTrait: TestTrait, SuiteTrait, TestScoping {
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

extension Trait where Self == HangTrait {
    /// Returns a trait that dumps no hang on this platform.
    ///
    /// - Parameter limit: The time after which a test would hang on Linux.
    /// - Returns: The trait.
    public static func hangDump(after limit: Duration) -> Self { HangTrait() }
}
