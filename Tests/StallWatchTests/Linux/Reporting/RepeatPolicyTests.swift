import TestSupport
import Testing

@testable import StallReports
@testable import StallWatch

@Suite struct RepeatPolicyTests {
    private let second: UInt64 = 1_000_000_000

    /// Decides about a stall of 100 ms; `nil` if it is suppressed, else the number of repeats.
    private func repeats(_ policy: inout RepeatPolicy, _ fingerprint: String, at now: UInt64) -> Int? {
        let decision = policy.decide(fingerprint, lasting: 100, at: now)
        return decision.suppressed == nil ? decision.repeats.count : nil
    }

    @Test func `powers of two are reported and the others counted`() {
        var policy = RepeatPolicy(reportsPerMinute: 1_000)
        let decisions = (1...17).map { policy.decide("a", lasting: Double($0) * 10 + 1_000, at: 0) }
        let reported = decisions.enumerated().filter { $1.suppressed == nil }.map { [$0 + 1, $1.repeats.count] }
        #expect(reported == [[1, 0], [2, 0], [4, 1], [8, 3], [16, 7]])
        #expect(decisions[16].suppressed == .repeated)
        #expect(decisions[15].repeats.durations?.totalMilliseconds == Double(7_000 + 10 * (9...15).reduce(0, +)))
        #expect(decisions[15].repeats.durations?.leastMilliseconds == 1_090)
        #expect(decisions[15].repeats.durations?.greatestMilliseconds == 1_150)
        #expect(repeats(&policy, "b", at: 0) == 0, "another fingerprint")
    }

    /// A server that hangs for a minute is no repeat of one that is slow.
    @Test func `a much longer stall is reported`() {
        var policy = RepeatPolicy(reportsPerMinute: 1_000)
        let decisions = [300, 300, 60_000, 300, 300, 300, 100_000].map { policy.decide("a", lasting: $0, at: 0) }
        #expect(decisions.map { $0.suppressed == nil } == [true, true, true, true, false, false, false])
        #expect(decisions[3].repeats.count == 0)
    }

    @Test func `a suppressed stall stands for those before it`() {
        var policy = RepeatPolicy(reportsPerMinute: 1_000)
        let decisions = (1...8).map { _ in policy.decide("a", lasting: 100, at: 0) }
        #expect(decisions[4...6].map(\.repeats.count) == [0, 1, 2])
        #expect(decisions[4].repeats.durations == nil)
        #expect(decisions[6].repeats.durations?.totalMilliseconds == 200)
        #expect(decisions[7].suppressed == nil && decisions[7].repeats.count == 3)
    }

    @Test func `every repeat is reported up to the limit if configured`() {
        var policy = RepeatPolicy(reportsPerMinute: 3, reportsEveryRepeat: true)
        for _ in 1...3 { #expect(repeats(&policy, "a", at: 0) == 0) }
        #expect(policy.decide("a", lasting: 1, at: 0).suppressed == .rateLimit)
        #expect(repeats(&policy, "a", at: 60 * second) == 1)
    }

    @Test func `reports per minute are limited`() {
        var policy = RepeatPolicy(reportsPerMinute: 3)
        for name in ["a", "b", "c"] { #expect(repeats(&policy, name, at: 10 * second) == 0) }
        #expect(policy.decide("d", lasting: 1, at: 20 * second).suppressed == .rateLimit)
        #expect(policy.decide("d", lasting: 1, at: 70 * second - 1).suppressed == .rateLimit)
        #expect(repeats(&policy, "d", at: 70 * second) == 2, "the suppressed report is due again")
    }

    @Test func `every stall is in a report or in the newest suppressed one`() {
        var policy = RepeatPolicy(reportsPerMinute: 7)
        var counted = 0
        var newest: [String: Int] = [:]
        for number in 0..<5_000 {
            let name = "f\(number % 13)"
            let decision = policy.decide(name, lasting: 1, at: UInt64(number) * second)
            newest[name] = decision.suppressed == nil ? nil : 1 + decision.repeats.count
            if decision.suppressed == nil { counted += 1 + decision.repeats.count }
        }
        #expect(counted + newest.values.reduce(0, +) == 5_000)
    }

    @Test func `the least recent fingerprint is forgotten`() {
        var policy = RepeatPolicy(reportsPerMinute: 10_000)
        for number in 0...RepeatPolicy.maximumFingerprints { _ = repeats(&policy, "f\(number)", at: UInt64(number)) }
        #expect(repeats(&policy, "f1", at: 5_000) == 0, "still known: occurrence 2")
        #expect(policy.decide("f1", lasting: 1, at: 5_001).suppressed == .repeated)
        #expect(repeats(&policy, "f0", at: 6_000) == 0, "forgotten, so occurrence 1 again")
    }

    @Test func delaysAfterFailuresGrow() {
        var retries = Retries()
        let notice = Delivery(notice: "")
        #expect(retries.mayTry(notice, at: 0))
        var now: UInt64 = 0
        var waits: [UInt64] = []
        for _ in 0..<11 {
            retries.failed(at: now)
            let next = retries.earliest ?? 0
            waits.append((next - now) / second)
            #expect(!retries.mayTry(notice, at: next - 1))
            now = next
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
        retries.succeeded()
        #expect(retries.mayTry(notice, at: 0))
    }

    @Test func retriesAreBoundedAndKeepTheNewestState() {
        var retries = Retries()
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        var lost = [retries.keep(.init(.updated, report)), retries.keep(.init(ended: report))]
        #expect(retries.waiting == 1)
        for _ in 0..<Retries.capacity {
            lost.append(retries.keep(.init(ended: Reporter.Settings.fixture().builder().report(of: .fixture()))))
        }
        #expect(retries.waiting == Retries.capacity)
        #expect(lost.compactMap { $0?.id } == [report.id])
    }

    @Test func `the end of a lost report is kept beyond the limit of retries`() throws {
        var retries = Retries()
        let builder = Reporter.Settings.fixture().builder()
        let end = try #require(Delivery(ended: builder.report(of: .fixture())).cut)
        var lost = [retries.keep(end)]
        for _ in 0...Retries.capacity { lost.append(retries.keep(.init(ended: builder.report(of: .fixture())))) }
        #expect(lost.compactMap(\.self).count == 2)
        #expect(retries.removeAll().first?.isCut == true)
        #expect(Delivery(.updated, builder.report(of: .fixture(state: .ongoing))).cut == nil)
    }
}

/// The time limit fails a test whose stream does not end.
@Suite(.timeLimit(.minutes(10))) struct ReportStreamsTests {
    private let streams = ReportStreams()
    private let report: StallReport

    init() throws {
        report = try StallReport.literal()
    }

    private func numbered(_ number: UInt64) -> StallReport {
        var report = report
        report.loop.turn = number
        return report
    }

    private func turns(_ stream: AsyncStream<StallReport>) async -> [UInt64] {
        await stream.reduce(into: []) { $0.append($1.loop.turn) }
    }

    @Test func everyStreamGetsAllReportsAfterItsStart() async {
        #expect(streams.yield(numbered(1)) == 0)
        let first = streams.stream()
        #expect(streams.yield(numbered(2)) == 0)
        let second = streams.stream()
        #expect(streams.yield(numbered(3)) == 0)
        streams.finish()
        #expect(await turns(first) == [2, 3])
        #expect(await turns(second) == [3])
    }

    @Test func aSlowReadersDroppedReportsAreCounted() async {
        let slow = [streams.stream(), streams.stream()]
        let capacity = UInt64(ReportStreams.capacity)
        var dropped = 0
        for number in 1...(capacity + 6) { dropped += streams.yield(numbered(number)) }
        #expect(dropped == 6 * slow.count)
        streams.finish()
        #expect(await turns(slow[1]) == Array(7...(capacity + 6)))
    }

    @Test func anEndedReaderDropsNoReports() {
        do { _ = streams.stream() }
        for _ in 0...ReportStreams.capacity { #expect(streams.yield(report) == 0) }
    }
}

@Suite struct TurnIntervalsTests {
    private static let second: UInt64 = 1_000_000_000

    private func loop(_ label: String, _ kind: LoopKind = .runLoop) -> LoopMonitor {
        .stub(label, threshold: 250_000_000, ThreadSource(kind))
    }

    private func run(_ loop: LoopMonitor, turns: Int, milliseconds: UInt64) {
        for _ in 0..<turns { loop.recorder.histogram.record(milliseconds * 1_000_000) }
    }

    @Test func `an interval has the turns since the last one`() throws {
        let intervals = TurnIntervals(every: 10 * Self.second)
        let main = loop("main")
        run(main, turns: 7, milliseconds: 900)
        #expect(intervals.pass([main], at: 5 * Self.second) == [], "what came before is not known")
        run(main, turns: 98, milliseconds: 10)
        run(main, turns: 2, milliseconds: 200)
        #expect(intervals.pass([main], at: 14 * Self.second) == [])
        let found = try #require(intervals.pass([main], at: 15 * Self.second).first)
        #expect(found.turns == 100)
        #expect(found.meanTurn == .microseconds(13_800))
        #expect(abs((found.utilization ?? 0) - 0.138) < 0.000_001)
        #expect(found.threshold == .milliseconds(250))
    }

    @Test func `an interval without turns has no delay`() throws {
        let intervals = TurnIntervals(every: Self.second)
        let main = loop("main")
        _ = intervals.pass([main], at: Self.second)
        let found = try #require(intervals.pass([main], at: 3_600 * Self.second).first)
        #expect(found.turns == 0)
        #expect(found.meanTurn == nil && found.turnDuration(quantile: 0.5) == nil)
        #expect(found.utilization == 0)
    }

    @Test func `loops with one label are added up, and the busiest counts`() throws {
        let intervals = TurnIntervals(every: Self.second)
        let loops = [loop("b"), loop("a", .eventLoop), loop("b", .mainQueue), loop("b")]
        _ = intervals.pass(loops, at: Self.second)
        run(loops[0], turns: 1, milliseconds: 100)
        run(loops[1], turns: 5, milliseconds: 1)
        run(loops[2], turns: 1, milliseconds: 900)
        run(loops[3], turns: 1, milliseconds: 500)
        let found = intervals.pass(loops, at: 2 * Self.second)
        #expect(found.map(\.label) == ["a", "b"])
        #expect(found[0].utilization == nil, "its turns are heartbeats")
        #expect(found[1].turns == 3)
        #expect(found[1].utilization == 0.5)
    }

    @Test func `a turn in progress counts in each interval, and only once`() throws {
        let intervals = TurnIntervals(every: 10 * Self.second)
        let main = loop("main")
        _ = intervals.pass([main], at: Self.second)
        main.recorder.beginTurn(at: 6 * Self.second)
        #expect(intervals.pass([main], at: 11 * Self.second).first?.utilization == 0.5)
        let hung = try #require(intervals.pass([main], at: 21 * Self.second).first)
        #expect(hung.utilization == 1 && hung.turns == 0 && hung.currentTurn == nil)
        main.recorder.endTurn(at: 22 * Self.second)
        let after = try #require(intervals.pass([main], at: 31 * Self.second).first)
        #expect(after.utilization == 0.1 && after.turns == 1)
        #expect(after.busyTime == .seconds(16), "the turns that are over")
    }

    @Test func `a loop that is new has the time since its watch began`() throws {
        let intervals = TurnIntervals(every: 10 * Self.second)
        _ = intervals.pass([], at: Self.second)
        let main = loop("main")
        main.begin(at: 9 * Self.second)
        run(main, turns: 1, milliseconds: 1_000)
        let found = try #require(intervals.pass([main], at: 11 * Self.second).first)
        #expect(found.watchedTime == .seconds(2) && found.utilization == 0.5)
    }

    /// An async `main` never runs the main run loop.
    @Test func `a run loop that never runs has no utilization beside heartbeats`() {
        let loops = [loop("main"), loop("main", .mainQueue)]
        func utilization() -> Double? {
            LoopStatistics(
                label: "main", nanoseconds: Self.second, loops.map { ($0, BusyTurns(of: $0, at: nil)) }
            ).utilization
        }
        #expect(utilization() == 0, "neither has run")
        run(loops[1], turns: 1, milliseconds: 500)
        #expect(utilization() == nil)
        run(loops[0], turns: 1, milliseconds: 250)
        #expect(utilization() == 0.25)
    }

    @Test func `the last interval is shorter, and a removed loop is forgotten`() throws {
        let intervals = TurnIntervals(every: 60 * Self.second)
        let main = loop("main")
        _ = intervals.pass([main], at: Self.second)
        run(main, turns: 3, milliseconds: 1)
        #expect(intervals.pass([main], at: 2 * Self.second, isLast: true).map(\.turns) == [3])
        #expect(intervals.pass([], at: 3 * Self.second, isLast: true) == [])
    }
}
