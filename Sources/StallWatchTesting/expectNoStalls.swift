public import StallWatch
public import Testing

/// Runs blocking code, and records an issue if it holds its thread for the given time or longer.
///
/// ```swift
/// expectNoStalls(over: .milliseconds(50)) { index.rebuild() }
/// ```
///
/// The code's whole duration counts, on whatever thread it runs, except the time in which the machine kept it from
/// running.
///
/// - Parameters:
///   - threshold: The shortest duration that is an issue, 10 ms or more.
///   - baseline: The path of a file with known stalls; `nil` for the one that `STALLWATCH_BASELINE` names.
///   - sourceLocation: The place of an issue whose function is not in the package.
///   - body: The code.
/// - Returns: The result of `body`.
/// - Throws: The errors of `body`.
public func expectNoStalls<Success, Failure>(
    over threshold: Duration = .milliseconds(100), baseline: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws(Failure) -> Success
) throws(Failure) -> Success {
    try StallCheck(fail: threshold, baseline: baseline, location: sourceLocation).runBlocking(body)
}

/// Runs async code, and records an issue if a loop stalls meanwhile for the given time or longer.
///
/// ```swift
/// await expectNoStalls(over: .milliseconds(50)) { await store.save() }
/// ```
///
/// Which stalls belong to the code is decided as for the trait
/// ``Testing/Trait/noStalls(over:on:baseline:sourceLocation:)``.
///
/// - Parameters:
///   - threshold: The shortest stall that is an issue, 10 ms or more.
///   - loops: The loops to watch: the main actor's by default.
///   - baseline: The path of a file with known stalls; `nil` for the one that `STALLWATCH_BASELINE` names.
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
    try await StallCheck(fail: threshold, loops: loops, baseline: baseline, location: sourceLocation)
        .run(function: function, isolation: isolation, body)
}

#if canImport(XCTest)
    public import XCTest

    extension XCTestCase {
        /// Runs blocking code, and fails the test if it holds its thread for the given time or longer.
        ///
        /// The time in which the machine kept the code from running does not count. The failure is at the line of the
        /// function to inspect first, and its text has the stacks.
        ///
        /// - Parameters:
        ///   - threshold: The shortest duration that is a failure, 10 ms or more.
        ///   - baseline: The path of a file with known stalls; `nil` for the one that `STALLWATCH_BASELINE` names.
        ///   - file: The file of a failure whose function is not in the package.
        ///   - line: The line of such a failure.
        ///   - body: The code.
        /// - Returns: The result of `body`.
        /// - Throws: The errors of `body`.
        public func assertNoStalls<Success>(
            over threshold: Duration = .milliseconds(100), baseline: String? = nil, file: StaticString = #filePath,
            line: UInt = #line, _ body: () throws -> Success
        ) rethrows -> Success {
            try StallCheck(fail: threshold, baseline: baseline, location: SourceLocation(file, line))
                .runBlocking(fail: fail, body)
        }

        /// Runs async code, and fails the test if a loop stalls meanwhile for the given time or longer.
        ///
        /// XCTest runs one test at a time, so the stalls are those of this test. The time in which the machine kept the
        /// code from running does not count.
        ///
        /// - Parameters:
        ///   - threshold: The shortest stall that is a failure, 10 ms or more.
        ///   - loops: The loops to watch: the main actor's by default.
        ///   - baseline: The path of a file with known stalls; `nil` for the one that `STALLWATCH_BASELINE` names.
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
            try await StallCheck(
                fail: threshold, loops: loops, baseline: baseline, location: SourceLocation(file, line)
            ).run(function: function, isolation: isolation, fail: fail, body)
        }

        private func fail(_ text: String, at place: SourceLocation) {
            recordFailure(withDescription: text, inFile: place.filePath, atLine: place.line, expected: true)
        }
    }

    extension SourceLocation {
        fileprivate init(_ file: StaticString, _ line: UInt) {
            self.init(fileID: "XCTest/test", filePath: "\(file)", line: Int(line), column: 1)
        }
    }
#endif
