public import StallWatch
public import Testing

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
