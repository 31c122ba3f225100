import StallReports
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
    let baseline = readBaseline(baseline, at: sourceLocation)
    let check = BlockingCheck(StallBudget(fail: threshold), baseline: baseline, sourceLocation)
    do throws(StallWatchError) {
        try SharedMonitor.shared.enter(check.scope)
    } catch {
        recordUnwatched(error, at: sourceLocation)
        return try body()
    }
    defer { for finding in check.finish() { finding.record(elsewhere: sourceLocation) } }
    return try check.run(body)
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
    let watched =
        Test.current.map { WatchedFunction($0) } ?? WatchedFunction(name: function, file: sourceLocation.filePath)
    let scope = StallScope(
        loops: loops, budget: StallBudget(fail: threshold), function: watched, location: sourceLocation,
        baseline: readBaseline(baseline, at: sourceLocation)
    )
    guard await isWatching(scope, at: sourceLocation) else { return try await body() }
    let success: Success
    do {
        success = try await StallScope.$current.withValue(scope, operation: body)
    } catch {
        for finding in await SharedMonitor.shared.leave(scope) { finding.record(elsewhere: sourceLocation) }
        throw error
    }
    for finding in await SharedMonitor.shared.leave(scope) { finding.record(elsewhere: sourceLocation) }
    return success
}

/// One run of blocking code, which a probe reports as one turn of a loop.
struct BlockingCheck {
    private let probe: LoopProbe
    let scope: StallScope

    init(_ budget: StallBudget, baseline: StallBaseline?, _ location: SourceLocation) {
        probe = SharedMonitor.shared.takeProbe()
        scope = StallScope(
            loops: [.probe(probe)], budget: budget, function: nil, location: location, baseline: baseline)
    }

    func run<Success, Failure>(_ body: () throws(Failure) -> Success) throws(Failure) -> Success {
        probe.beginTurn()
        defer { probe.endTurn() }
        return try body()
    }

    /// Ends the check, and returns its stalls.
    func finish() -> [StallFinding] {
        defer { SharedMonitor.shared.giveBack(probe) }
        return SharedMonitor.shared.leaveBlocking(scope)
    }
}
