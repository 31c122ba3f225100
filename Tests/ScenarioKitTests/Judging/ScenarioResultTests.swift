import StallReports
import StallWatch
import Testing

@testable import stallwatch_scenarios

extension Outcome {
    /// Returns the outcome of a scenario that stalls in `function`, at a threshold of 250 ms.
    static func stub(
        _ scenario: String, in function: String?, cause: String? = nil, injected: Double? = 500,
        _ reports: [ReportedStall] = [], unavailable: String? = nil
    ) -> Outcome {
        Outcome(
            scenario: scenario, expected: function.map { ExpectedReport(function: $0, cause: cause) },
            thresholdMilliseconds: 250, injected: injected.map { [$0] } ?? [], reports: reports,
            unavailable: unavailable)
    }
}

extension Outcome {
    /// Expects one timer to wait for 475 ms, and reports others.
    fileprivate mutating func delay(timers: Int?, items: Int?, by milliseconds: Double?) {
        expected = expected?.delaying(timers: 1, due: 0.1)
        (reports[0].timers, reports[0].items, reports[0].timerDelay) = (timers, items, milliseconds)
        (reports[0].wait, timerDelay, timerWait) = (475, 475, 475)
    }
}

/// Each result that the judge can give, for a right outcome after one change.
@Suite struct ScenarioResultTests {
    /// The outcome of a stall of 500 ms; a few more fields than those that most scenarios judge.
    private static let right: Outcome = {
        var expected = ExpectedReport(mode: "tracking", callout: .timer, function: "stall()", cause: "lock")
        (expected.owner, expected.advice) = ("holder", "sleep")
        var report = ReportedStall(
            file: "stalls/a.json", loop: "main", mode: "tracking", callout: .timer, milliseconds: 500,
            function: "stall()", cause: "lock", owner: "holder")
        report.advice = "sleep"
        return Outcome(
            scenario: "test", expected: expected, thresholdMilliseconds: 250, injected: [500], reports: [report])
    }()

    private typealias Change = @Sendable (inout Outcome) -> Void

    private static let changes: [(Change, ScenarioResult)] = [
        ({ _ in }, .ok), ({ $0.reports = [] }, .missed),
        ({ $0.reports[0].kind = .saturation }, .wrongKind), ({ $0.expected?.differingSamples = true }, .wrongKind),
        ({ $0.reports[0].loop = "worker" }, .wrongLoop), ({ $0.reports[0].loopKind = .probe }, .wrongLoop),
        ({ $0.reports[0].nesting = 1 }, .wrongLoop), ({ $0.reports[0].mode = nil }, .wrongMode),
        ({ $0.reports[0].callout = .source0 }, .wrongCallout), ({ $0.reports[0].function = nil }, .wrongFunction),
        // The tolerance is 2 %.
        ({ $0.reports[0].milliseconds = 510 }, .ok), ({ $0.reports[0].milliseconds = 511 }, .wrongDuration),
        ({ $0.reports[0].cause = "sleep" }, .wrongCause), ({ $0.reports[0].cause = nil }, .wrongCause),
        ({ $0.expected?.call = "connect(" }, .wrongCause), ({ $0.expected?.lock = .once }, .wrongCause),
        ({ $0.reports[0].owner = "another" }, .wrongOwner), ({ $0.reports[0].owner = nil }, .wrongOwner),
        ({ $0.expected?.owner = nil }, .wrongOwner), ({ $0.expected?.ownerDoes = "write" }, .wrongOwner),
        ({ $0.expected?.meanwhile = ["worker"] }, .wrongOwner), ({ $0.reports[0].meanwhile = ["worker"] }, .ok),
        ({ $0.expected?.ends = .sleep }, .wrongOwner), ({ $0.expected?.holder = "hold()" }, .wrongOwner),
        ({ $0.reports[0].advice = ExpectedReport.noAdvice }, .wrongAdvice),
        // The parts may differ from the whole by 2 ms and 2 %.
        ({ $0.reports[0].split = .init(onCPU: 111, runQueue: 0, blocked: 400, uncertainty: 50) }, .ok),
        ({ $0.reports[0].split = .init(onCPU: 113, runQueue: 0, blocked: 400, uncertainty: 50) }, .wrongSplit),
        ({ $0.reports[0].split = .init(onCPU: 100, runQueue: 0, blocked: 387, uncertainty: 50) }, .wrongSplit),
        // One timer, which has measured 475 ms; 5 % are 24 ms.
        ({ $0.delay(timers: 1, items: 0, by: 475) }, .ok), ({ $0.delay(timers: 2, items: 0, by: 475) }, .wrongVictims),
        ({ $0.delay(timers: 1, items: 1, by: 475) }, .wrongVictims),
        ({ $0.delay(timers: 1, items: 0, by: 498) }, .ok), ({ $0.delay(timers: 1, items: 0, by: 500) }, .wrongDuration),
        ({ $0.delay(timers: nil, items: 0, by: nil) }, .wrongVictims),
        ({ $0.delay(timers: 1, items: nil, by: 475) }, .wrongVictims),
        ({ $0.delay(timers: 1, items: 0, by: nil) }, .wrongDuration),
        ({ ($0.reports[0].samples, $0.reports[0].incompleteSamples) = (10, 1) }, .ok),
        ({ ($0.reports[0].samples, $0.reports[0].incompleteSamples) = (9, 1) }, .incompleteStack),
        ({ $0.reports.append($0.reports[0]) }, .falseAlarm), ({ $0.notCounted = .processStopped }, .notCounted),
        ({ ($0.reports, $0.suppressedStalls) = ([], 1) }, .suppressed),
        // The thread was ready to run without a CPU for half of the stall, or for less.
        ({ ($0.reports[0].cause, $0.runnableMilliseconds) = ("cpuContention", 250) }, .inconclusive),
        ({ ($0.reports[0].cause, $0.runnableMilliseconds) = ("cpuContention", 249) }, .wrongCause),
        ({ ($0.reports[0].advice, $0.runnableMilliseconds) = (ExpectedReport.noAdvice, 225) }, .inconclusive),
        ({ ($0.reports[0].advice, $0.runnableMilliseconds) = (ExpectedReport.noAdvice, 224) }, .wrongAdvice),
        ({ $0.unavailable = "there is no library" }, .notAvailable), ({ $0.hasFailed = true }, .noResult),
    ]

    @Test(arguments: changes)
    private func eachResultHasItsReason(change: Change, result: ScenarioResult) {
        var outcome = Self.right
        change(&outcome)
        #expect(outcome.result == result)
    }

    @Test func operationsAndLaterTurnsAreVictims() {
        for (operations, later, result) in [
            (2, 30.0, ScenarioResult.ok), (1, 30, .wrongVictims), (2, 29, .wrongVictims),
        ] {
            var outcome = Self.right
            outcome.expected = outcome.expected?.delaying(operations: 2, later: 30)
            (outcome.reports[0].timers, outcome.reports[0].items) = (0, 0)
            (outcome.reports[0].operations, outcome.reports[0].later) = (operations, later)
            #expect(outcome.result == result)
        }
    }

    /// One timer, due 25 ms after the beginning, and every 75 ms since: six times more by 500 ms.
    @Test(arguments: [(6, ScenarioResult.ok), (5, .wrongVictims), (7, .wrongVictims), (0, .wrongVictims)])
    func skippedFiringsAreCounted(skipped: Int, result: ScenarioResult) {
        var outcome = Self.right
        outcome.expected = outcome.expected?.delaying(timers: 1, due: 0.1, every: 0.3)
        (outcome.reports[0].timers, outcome.reports[0].items, outcome.reports[0].timerDelay) = (1, 0, 475)
        outcome.reports[0].skippedFirings = skipped
        (outcome.reports[0].wait, outcome.timerDelay, outcome.timerWait) = (475, 475, 475)
        #expect(outcome.result == result)
    }

    /// A timer may have been due long before the stall: only the time within it is the stall's.
    @Test(arguments: [(475.0, ScenarioResult.ok), (1_475, .wrongDuration), (450, .wrongDuration)])
    func theTimeWithinTheStallIsJudged(wait: Double, result: ScenarioResult) {
        var outcome = Self.right
        outcome.expected = outcome.expected?.delaying(timers: 1, items: nil)
        (outcome.reports[0].timers, outcome.reports[0].timerDelay, outcome.reports[0].wait) = (1, 1_475, wait)
        (outcome.timerDelay, outcome.timerWait) = (1_475, 475)
        #expect(outcome.result == result)
    }

    @Test func whereNothingWaitsTheWaitIsNone() {
        for (wait, result) in [(0.0, ScenarioResult.ok), (1, .wrongDuration)] {
            var outcome = Self.right
            outcome.expected = outcome.expected?.delaying()
            (outcome.reports[0].timers, outcome.reports[0].items, outcome.reports[0].wait) = (0, 0, wait)
            #expect(outcome.result == result)
        }
    }

    @Test(arguments: [(0.0, ScenarioResult.ok), (19, .ok), (20, .wrongVictims)])
    func shortTurnsAfterAStallAreNoVictims(later: Double, result: ScenarioResult) {
        var outcome = Self.right
        outcome.expected = outcome.expected?.delaying()
        (outcome.reports[0].timers, outcome.reports[0].items, outcome.reports[0].later) = (0, 0, later)
        #expect(outcome.result == result)
    }

    @Test func eachExpectedStackIsThatOfAReport() {
        for (stack, result) in [
            (["stall()", "main"], ScenarioResult.ok), (["usleep"], .wrongFunction),
            (["stall()", "main", "?"], .wrongFunction),
        ] {
            var outcome = Self.right
            outcome.expected?.stacks = [stack]
            outcome.reports[0].functions = ["usleep", "stall()", "?", "main"]
            #expect(outcome.result == result)
        }
    }

    /// The other loop's stall has to be reported, once.
    @Test func aStallBesidesIsJudged() {
        for (count, result) in [(0, ScenarioResult.missed), (1, .ok), (2, .falseAlarm)] {
            var outcome = Self.right
            outcome.expected?.besides = "worker"
            let other = ReportedStall(file: "stalls/b.json", loop: "worker", milliseconds: 400)
            outcome.reports += Array(repeating: other, count: count)
            #expect(outcome.result == result)
        }
    }

    @Test func aShortStallThatTookLongerMayBeReported() {
        for (injected, reports, result) in [
            (300.0, [301.0], ScenarioResult.ok), (248, [251], .ok), (244, [248], .falseAlarm),
            (300, [320], .falseAlarm), (300, [301, 301], .falseAlarm), (300, [], .missed), (254, [], .ok),
        ] {
            let reports = reports.map { ReportedStall(file: "stalls/a.json", loop: "main", milliseconds: $0) }
            #expect(Outcome.stub("short", in: nil, injected: injected, reports).result == result, "\(injected)")
        }
    }

    @Test func `the process that is waited for is judged`() {
        func result(_ process: Int32?, _ role: StallReport.PeerRole? = .holder, does: String? = "clock_nanosleep")
            -> ScenarioResult
        {
            var outcome = Self.right
            outcome.expected = outcome.expected?.waiting(for: .holder, in: "clock_nanosleep")
            outcome.peer = 812
            (outcome.reports[0].peer, outcome.reports[0].peerProcess, outcome.reports[0].peerDoes) = (
                role, process, does
            )
            return outcome.result
        }
        #expect(result(812) == .ok)
        #expect(result(nil) == .wrongOwner)
        #expect(result(812, .writer) == .wrongOwner)
        #expect(result(812, does: "futex") == .wrongOwner)
    }

    @Test func aReportOfAToleratedCauseIsOk() {
        var outcome = Self.right
        (outcome.expected, outcome.injected) = (nil, [])
        #expect(outcome.result == .falseAlarm)
        outcome.toleratedCause = "lock"
        #expect(outcome.result == .ok)
        outcome.reports[0].cause = "io"
        #expect(outcome.result == .falseAlarm)
    }
}
