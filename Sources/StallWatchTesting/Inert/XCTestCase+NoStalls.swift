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
