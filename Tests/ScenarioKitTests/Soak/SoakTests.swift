import Foundation
import StallWatch
import Testing

@testable import stallwatch_scenarios

@Suite struct ScenarioRoundsTests {
    private func turns(_ count: Int, seed: UInt64, of scenarios: [Scenario] = Scenario.all) -> [ScenarioRounds.Turn] {
        var rounds = ScenarioRounds(scenarios, seed: seed)
        return (0..<count).map { _ in rounds.next() }
    }

    @Test func aRoundHasEveryScenarioOnceInAnOrderOfItsSeed() {
        let count = Scenario.all.count
        let turns = turns(count * 2, seed: 42)
        let names = turns.map(\.scenario.name)
        for half in [names.prefix(count), names.suffix(count)] {
            #expect(half.sorted() == Scenario.all.map(\.name).sorted())
        }
        #expect(Array(names.prefix(count)) != Array(names.suffix(count)))
        let again = self.turns(count * 2, seed: 42)
        #expect(again.map(\.scenario.name) == names && again.map(\.startsCold) == turns.map(\.startsCold))
        #expect(self.turns(count * 2, seed: 43).map(\.scenario.name) != names)
    }
}

@Suite struct SoakTotalsTests {
    private let report = ReportedStall(file: "stalls/a.json", loop: "main", milliseconds: 500, function: "spin()")

    private func outcome(_ reports: [ReportedStall], isStall: Bool = true) -> Outcome {
        .stub(isStall ? "spin" : "idle", in: isStall ? "spin()" : nil, injected: isStall ? 500 : nil, reports)
    }

    private typealias Change = @Sendable (inout SoakTotals) -> Void

    /// Changes of good totals, and the problem that each must give.
    private static let checks: [(Change, String)] = [
        ({ $0.growth?.descriptors = 5 }, "5 file descriptors more than before, where 4 may be"),
        (
            { $0.leftChildren = [LeftChild(stat: "12 (a (b)) Z 7 7", of: 7)].compactMap { $0 } },
            "children left behind: a (b) (Z)"
        ),
        ({ $0.calls.interrupted = 3 }, "3 calls returned EINTR"),
        (
            { $0.calls.captured = 19 },
            "only 19 of 40 calls were captured: too few to show that a capture interrupts none"
        ),
        ({ $0.calls.early = 1 }, "1 calls returned early"),
        ({ $0.calls.failed = 1 }, "1 calls returned another error"),
        ({ $0.calls.reported = 38 }, "2 calls over the threshold were not reported"),
        ({ $0.chaos[.fork]?.failed = 1 }, "1 actions of the kind fork failed"),
        ({ $0.chaos[.clock] = .init(isRefused: true) }, "steps of the machine's clock are not permitted"),
        ({ $0.wasInterrupted = true }, "a signal ended it early"),
    ]

    private var good: SoakTotals {
        var totals = SoakTotals(seed: 42)
        totals.add(outcome([report]))
        totals.add(outcome([], isStall: false))
        totals.seconds = 61.2
        totals.rounds = 1
        totals.growth = .init(memory: 512, descriptors: 0, threads: 0, mappings: -3)
        totals.health = .init(memory: 20480, resident: 71680, descriptors: 12, threads: 17, mappings: 400)
        totals.calls = .init(calls: 40, reported: 40, captured: 40)
        totals.chaos = [.fork: .init(done: 120)]
        totals.coldStarts = 1
        totals.majorFaults = 310
        return totals
    }

    @Test func eachFailureIsNamedWithItsNumber() {
        var totals = good
        #expect(totals.problems == [])
        totals.add(outcome([]))
        #expect(totals.stalls == 2 && totals.reported == 1 && totals.falseAlarms == 0)
        totals.add(outcome([report], isStall: false))
        totals.addLate([report])
        #expect(totals.falseAlarms == 2)
        #expect(totals.failures.map(\.reports) == [[], ["stalls/a.json"], ["stalls/a.json"]])
        let problem =
            "3 scenarios failed, spin (no. 3: missed), idle (no. 4: false-alarm), (after the last) (no. 4: false-alarm)"
        #expect(totals.problems == [problem])
        #expect(totals.line.hasPrefix("soak FAILED: \(problem). Seed 42,"))
    }

    @Test(arguments: SoakTotalsTests.checks)
    private func everyCheckCanFail(change: Change, problem: String) {
        var totals = good
        change(&totals)
        #expect(totals.problems == [problem])
    }

    @Test func aLivingChildIsFound() async throws {
        let child = try ChildProcess([], executable: "/bin/cat")
        let isThere = try LeftChild.all().contains { $0.id == Int(child.id) }
        _ = await child.finish(within: .seconds(10))
        #expect(isThere)
        #expect(try !LeftChild.all().contains { $0.id == Int(child.id) })
    }
}
