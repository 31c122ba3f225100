import StallReports
import StallWatch
import Testing

struct StallCheck: Sendable {
    var warn: Duration?
    var fail: Duration
    var loops: [WatchedLoop] = [.main]
    /// The path of a file with known stalls; `nil` for the one that the environment names.
    var baseline: String?
    var location: SourceLocation

    typealias Fail = (_ text: String, _ location: SourceLocation) -> Void

    func run(_ test: Test, _ function: @Sendable () async throws -> Void) async throws {
        let scope = scope(loops, WatchedFunction(test), nil)
        guard await isWatching(scope, nil) else { return try await function() }
        // The trait of the suite, if this one is the test's own.
        StallScope.current?.replace()
        let result = await Result { try await StallScope.$current.withValue(scope) { try await function() } }
        record(await SharedMonitor.shared.leave(scope), of: scope, nil)
        try result.get()
    }

    /// Runs blocking code, which a probe reports as one turn of a loop.
    func runBlocking<Success, Failure>(
        fail: Fail? = nil, _ body: () throws(Failure) -> Success
    ) throws(Failure) -> Success {
        let probe = SharedMonitor.shared.takeProbe()
        defer { SharedMonitor.shared.giveBack(probe) }
        let scope = scope([.probe(probe)], nil, fail)
        do throws(StallWatchError) {
            try SharedMonitor.shared.enter(scope)
        } catch {
            recordUnwatched(error, fail)
            return try body()
        }
        defer { record(SharedMonitor.shared.leaveBlocking(scope), of: scope, fail) }
        probe.beginTurn()
        defer { probe.endTurn() }
        return try body()
    }

    /// Runs async code, then records the stalls of the loops; the name of the function around it counts outside of a test.
    func run<Success>(
        function: String, isolation: isolated (any Actor)?, fail: Fail? = nil, _ body: () async throws -> Success
    ) async rethrows -> Success {
        let test = fail == nil ? Test.current.map { WatchedFunction($0) } : nil
        let scope = scope(loops, test ?? WatchedFunction(name: function, file: location.filePath), fail)
        guard await isWatching(scope, fail) else { return try await body() }
        let success: Success
        do {
            success = try await StallScope.$current.withValue(scope, operation: body)
        } catch {
            record(await SharedMonitor.shared.leave(scope), of: scope, fail)
            throw error
        }
        record(await SharedMonitor.shared.leave(scope), of: scope, fail)
        return success
    }

    private func scope(_ loops: [WatchedLoop], _ function: WatchedFunction?, _ fail: Fail?) -> StallScope {
        StallScope(
            loops: loops, budget: StallBudget(warn: warn, fail: self.fail), function: function, location: location,
            baseline: readBaseline(fail))
    }

    private func readBaseline(_ fail: Fail?) -> StallBaseline? {
        do throws(StallWatchError) {
            return try BaselineFiles.baseline(at: baseline)
        } catch {
            record(error.description, fail)
            return nil
        }
    }

    /// Begins to watch the loops of a scope, or records an issue: a guard that does not watch must not pass.
    private func isWatching(
        _ scope: StallScope, _ fail: Fail?, isolation: isolated (any Actor)? = #isolation
    ) async -> Bool {
        do throws(StallWatchError) {
            try await SharedMonitor.shared.enterFromTask(scope)
            return true
        } catch {
            recordUnwatched(error, fail)
            return false
        }
    }

    private func recordUnwatched(_ error: StallWatchError, _ fail: Fail?) {
        record("stalls cannot be watched here: \(error)", fail)
    }

    private func record(_ text: String, _ fail: Fail?) {
        if let fail { return fail(text, location) }
        Issue.record(Comment(rawValue: text), sourceLocation: location)
    }

    /// Records the stalls of a scope, or that they are not known: a guard that has not seen the end must not pass.
    private func record(_ ending: SharedMonitor.Ending, of scope: StallScope, _ fail: Fail?) {
        for finding in ending.findings { record(finding, fail) }
        if let problem = ending.problem(scope.labels) { record(problem, fail) }
    }

    private func record(_ finding: StallFinding, _ fail: Fail?) {
        guard let fail else { return finding.record(elsewhere: location) }
        guard !finding.isExcused, finding.severity == .error else { return }
        let place = finding.report.culpritLocation ?? location
        fail("\(finding.sentence)\n\(StallText(report: finding.report).text)", place)
    }
}

extension Result where Failure == any Error {
    init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
