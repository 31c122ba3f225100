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

/// Runs blocking code, and records no issue on this platform.
///
/// - Parameters:
///   - threshold: The shortest duration that would be an issue on Linux.
///   - baseline: The path of a file with known stalls.
///   - sourceLocation: The place of an issue whose function is not in the package.
///   - body: The code.
/// - Returns: The result of `body`.
/// - Throws: The errors of `body`.
public func expectNoStalls<Success, Failure>(
    over threshold: Duration = .milliseconds(100), baseline: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws(Failure) -> Success
) throws(Failure) -> Success {
    try body()
}

/// Runs async code, and records no issue on this platform.
///
/// - Parameters:
///   - threshold: The shortest stall that would be an issue on Linux.
///   - loops: The loops to watch.
///   - baseline: The path of a file with known stalls.
///   - isolation: The actor that runs the code: the caller's.
///   - function: The function that contains the code.
///   - sourceLocation: The place of an issue whose function is not in the package.
///   - body: The code.
/// - Returns: The result of `body`.
/// - Throws: The errors of `body`.
public func expectNoStalls<Success>(
    over threshold: Duration = .milliseconds(100), on loops: [WatchedLoop] = [.main], baseline: String? = nil,
    isolation: isolated (any Actor)? = #isolation, function: String = #function,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Success
) async rethrows -> Success {
    try await body()
}

#if canImport(XCTest)
    public import StallWatch
    public import XCTest

    extension XCTestCase {
        /// Runs blocking code, and records no failure on this platform.
        ///
        /// - Parameters:
        ///   - threshold: The shortest duration that would be a failure on Linux.
        ///   - baseline: The path of a file with known stalls.
        ///   - file: The file of a failure whose function is not in the package.
        ///   - line: The line of such a failure.
        ///   - body: The code.
        /// - Returns: The result of `body`.
        /// - Throws: The errors of `body`.
        public func assertNoStalls<Success>(
            over threshold: Duration = .milliseconds(100), baseline: String? = nil, file: StaticString = #filePath,
            line: UInt = #line, _ body: () throws -> Success
        ) rethrows -> Success {
            try body()
        }

        /// Runs async code, and records no failure on this platform.
        ///
        /// - Parameters:
        ///   - threshold: The shortest stall that would be a failure on Linux.
        ///   - loops: The loops to watch.
        ///   - baseline: The path of a file with known stalls.
        ///   - isolation: The actor that runs the code: the caller's.
        ///   - function: The function that contains the code.
        ///   - file: The file of a failure whose function is not in the package.
        ///   - line: The line of such a failure.
        ///   - body: The code.
        /// - Returns: The result of `body`.
        /// - Throws: The errors of `body`.
        public func assertNoStalls<Success>(
            over threshold: Duration = .milliseconds(100), on loops: [WatchedLoop] = [.main], baseline: String? = nil,
            isolation: isolated (any Actor)? = #isolation, function: String = #function,
            file: StaticString = #filePath, line: UInt = #line, _ body: () async throws -> Success
        ) async rethrows -> Success {
            try await body()
        }
    }
#endif
