import LinuxSupport
import Synchronization
import TestSupport
import Testing

@testable import StallReports
@testable import StallWatchTesting

@Suite struct ScopeEndingTests {
    @Test func `a loop that has not come back is a problem`() {
        #expect(SharedMonitor.Ending(findings: [], isSettled: true).problem(["main"]) == nil)
        let problem = SharedMonitor.Ending(findings: [], isSettled: false).problem(["tasks", "main"])
        #expect(problem?.contains("main, tasks had not come back") == true)
    }
}

@Suite struct StallAttributionTests {
    private static let file = "/app/Tests/FileTests.swift"
    /// When the stall begins: 2026-11-21T08:00:00.123456Z in the literal.
    private static let start = Timestamp("2026-11-21T08:00:00.123456Z") ?? Timestamp(microsecondsSince1970: 0)

    private static func candidate(
        _ name: String?, beganBefore milliseconds: Int64 = 50, endedAfter end: Int64? = nil
    ) -> StallAttribution.Candidate {
        StallAttribution.Candidate(
            function: name.map { WatchedFunction(name: $0, file: file) },
            began: Timestamp(microsecondsSince1970: start.microsecondsSince1970 - milliseconds * 1_000),
            ended: end.map { Timestamp(microsecondsSince1970: start.microsecondsSince1970 + $0 * 1_000) }
        )
    }

    /// Returns a report of 1,000 ms; each sample has its functions, innermost first, or `nil` for no stack, and its
    /// milliseconds.
    private static func report(_ samples: [(functions: [String]?, weight: Double)]) throws -> StallReport {
        var report = try StallReport.literal()
        report.durationMilliseconds = 1_000
        report.stacks = []
        report.frames = []
        report.samples = samples.map { functions, weight in
            var sample = StallReport.Sample(
                atMilliseconds: 100, weightMilliseconds: weight, isValid: true, isComplete: true, heldMicroseconds: 0,
                captureMicroseconds: 0)
            guard let functions else { return sample }
            sample.stack = report.stacks.count
            report.stacks.append(Array(report.frames.count..<report.frames.count + functions.count))
            report.frames += functions.enumerated().map { index, function in
                StallReport.Frame(
                    image: 0, offset: "0x\(index)", function: function, file: file, line: 7, isInApp: true, kind: .code)
            }
            return sample
        }
        return report
    }

    private static let two = [candidate("FileTests.a()"), candidate("FileTests.b()")]
    private static let runner = "closure #1 in static Runner._runTestCase(_:within:context:)"

    @Test func `the test on the stack is the owner`() throws {
        let report = try Self.report([(["load()", "FileTests.b()", Self.runner], 1_000)])
        let attribution = StallAttribution(report, among: Self.two)
        #expect(attribution.parts.keys.sorted() == [1])
        #expect(attribution.parts[1]?.share == 1)
        #expect(attribution.parts[1]?.report == report)
        #expect(attribution.unknown == nil)
    }

    @Test func `a stall without a test on the stack belongs to the only test that runs`() throws {
        let report = try Self.report([(["load()", "closure #1 in start()"], 1_000)])
        let attribution = StallAttribution(report, among: [Self.candidate("FileTests.a()")])
        #expect(attribution.parts[0]?.share == 1)
    }

    @Test func `of several tests the owner is unknown`() throws {
        let report = try Self.report([(["load()"], 1_000)])
        let attribution = StallAttribution(report, among: Self.two)
        #expect(attribution.parts.isEmpty)
        #expect(attribution.unknown?.candidates == [0, 1])
        #expect(attribution.unknown?.part.share == 1)
    }

    @Test func `a test that began later is not the owner`() throws {
        let report = try Self.report([(["load()"], 1_000)])
        let attribution = StallAttribution(
            report, among: [Self.candidate("FileTests.a()"), Self.candidate("FileTests.b()", beganBefore: -20)])
        #expect(attribution.parts.keys.sorted() == [0])
        #expect(attribution.unknown == nil)
    }

    @Test func `a stall that began before the only test belongs to no test`() throws {
        let report = try Self.report([(["load()"], 1_000)])
        let attribution = StallAttribution(report, among: [Self.candidate("FileTests.a()", beganBefore: -20)])
        #expect(attribution.parts.isEmpty)
        #expect(attribution.unknown == nil)
    }

    @Test func `another test on the stack is not charged to the one in scope`() throws {
        let report = try Self.report([(["load()", "OtherTests.c()", Self.runner], 1_000)])
        let attribution = StallAttribution(report, among: [Self.candidate("FileTests.a()")])
        #expect(attribution.parts.isEmpty)
        #expect(attribution.unknown == nil)
    }

    @Test func `a turn of two tests is split by their samples`() throws {
        let report = try Self.report([
            (["load()", "FileTests.a()", Self.runner], 250), (["save()", "FileTests.b()", Self.runner], 700),
            (["idle()"], 50),
        ])
        let attribution = StallAttribution(report, among: Self.two)
        #expect(attribution.parts[0]?.share == 0.25)
        #expect(attribution.parts[0]?.report.samples.count == 1)
        #expect(attribution.parts[0]?.report.durationMilliseconds == 250)
        #expect(attribution.parts[0]?.report.culprit?.function == "load()")
        #expect(attribution.parts[1]?.report.culprit?.function == "save()")
        #expect(attribution.unknown?.part.share == 0.05)
    }

    /// Two main-actor tests in one turn: the first computes, the second sleeps.
    @Test func `the parts of a turn have ids, causes and times of their own`() throws {
        var report = try Self.report([
            (["load()", "FileTests.a()", Self.runner], 400),
            (["clock_nanosleep@GLIBC_2.17", "save()", "FileTests.b()", Self.runner], 265),
        ])
        report.durationMilliseconds = 665
        report.samples[0].threadState = .running
        report.samples[1].threadState = .blocked
        report.cause = StallReport.Cause(
            kind: .cpu, summary: "On CPU for 364 of 665 ms.", confidence: .likely, onCPUMilliseconds: 364,
            runQueueMilliseconds: 36, blockedMilliseconds: 265, uncertaintyMilliseconds: 0)
        let parts = StallAttribution(report, among: Self.two).parts
        let (first, second) = (try #require(parts[0]?.report), try #require(parts[1]?.report))
        #expect(Set([first.id, second.id, report.id]).count == 3)
        #expect(first.fileName != second.fileName)
        #expect(StallAttribution(report, among: Self.two).parts[1]?.report.id == second.id)
        #expect(first.cause?.kind == .cpu)
        #expect(first.cause?.summary == "On CPU for 364 of 400 ms, in load(), called by FileTests.a().")
        #expect(second.cause?.kind == .sleep)
        #expect(second.cause?.summary == "Slept for 265 of 265 ms in clock_nanosleep.")
        for part in [first, second] { #expect(try StallReport(jsonData: part.jsonData()) == part) }
    }

    @Test func `a function whose name ends like a sleep is none`() throws {
        for (function, kind) in [
            ("notes_usleep", .unknown), ("deepsleep", .unknown), ("__clock_nanosleep", .sleep), ("usleep", .sleep),
        ] as [(String, StallReport.CauseKind)] {
            var report = try Self.report([
                (["load()", "FileTests.a()", Self.runner], 400), ([function, "FileTests.b()", Self.runner], 265),
            ])
            report.durationMilliseconds = 665
            (report.samples[0].threadState, report.samples[1].threadState) = (.running, .blocked)
            report.cause = StallReport.Cause(
                kind: .cpu, summary: "", confidence: .likely, onCPUMilliseconds: 364, runQueueMilliseconds: 36,
                blockedMilliseconds: 265, uncertaintyMilliseconds: 0)
            let parts = StallAttribution(report, among: Self.two).parts
            #expect(parts[1]?.report.cause?.kind == kind, "\(function)")
        }
    }

    @Test func `samples without a stack follow the others`() throws {
        let report = try Self.report([(["load()", "FileTests.a()", Self.runner], 600), (nil, 400)])
        let attribution = StallAttribution(report, among: Self.two)
        #expect(attribution.parts[0]?.share == 1)
        #expect(attribution.unknown == nil)
    }

    @Test func `without any stack the tests that ran decide`() throws {
        let report = try Self.report([(nil, 1_000)])
        let one = StallAttribution(report, among: [Self.candidate("FileTests.a()")])
        #expect(one.parts[0]?.share == 1)
        let two = StallAttribution(report, among: Self.two)
        #expect(two.unknown?.candidates == [0, 1])
    }

    @Test func `two cases of one test cannot be told apart`() throws {
        let report = try Self.report([(["load()", "FileTests.a()", Self.runner], 1_000)])
        let attribution = StallAttribution(report, among: [Self.candidate("FileTests.a()")] + Self.two)
        #expect(attribution.parts.isEmpty)
        #expect(attribution.unknown?.candidates == [0, 1])
        let names = ["FileTests.a()", "FileTests.a()"]
        #expect(
            StallFinding.remark(onOneOf: names)
                == "It belongs to one of the cases of FileTests.a() that ran then, but nothing shows to which: "
                + "run them one after another to know.")
        let two = StallFinding.remark(onOneOf: names + ["FileTests.b()"])
        #expect(two.contains("one of the tests that ran then (FileTests.a(), FileTests.b()), but no stack shows"))
    }

    @Test(arguments: [(920.0, false), (890, true)]) func `a lack of CPU is named from a tenth on`(
        most: Double, isNamed: Bool
    ) throws {
        var time = CodeTime(duration: 1_000, cause: nil, .init(hasStack: true, blocked: 0, isOfPool: false))
        time.most = most
        let finding = StallFinding(
            report: try Self.report([(["load()"], 1_000)]), time: time, severity: .error,
            budget: StallBudget(fail: .milliseconds(100)))
        #expect(finding.sentence.contains("ms of them without a CPU") == isNamed, "\(finding.sentence)")
    }

    /// A heartbeat that is sent behind what the first test has left behind begins its turn in the second test.
    @Test func `a stall that an ended test may have left behind is not charged to the next one`() throws {
        var before = Self.candidate("FileTests.a()", endedAfter: -10)
        before.hasLeft = true
        let tests = [before, Self.candidate("FileTests.b()", beganBefore: 5)]
        var report = try Self.report([(["load()"], 1_000)])
        report.startUncertaintyMilliseconds = 5
        #expect(StallAttribution(report, among: tests).parts.keys.sorted() == [1])
        report.startUncertaintyMilliseconds = 25
        let attribution = StallAttribution(report, among: tests)
        #expect(attribution.parts.isEmpty)
        #expect(attribution.unknown?.candidates == [0, 1])
        report.frames.append(
            StallReport.Frame(
                image: 0, offset: "0x1", function: "closure #1 in FileTests.a()", file: Self.file, line: 7,
                isInApp: true, kind: .code))
        report.stacks[0].append(report.frames.count - 1)
        #expect(StallAttribution(report, among: tests).parts.keys.sorted() == [0])
    }

    @Test func `an ended test has only the stalls whose stacks show it`() throws {
        var before = Self.candidate("FileTests.a()", endedAfter: 5)
        before.hasLeft = true
        let unnamed = StallAttribution(try Self.report([(["load()"], 1_000)]), among: [before])
        #expect(unnamed.parts.isEmpty)
        #expect(unnamed.unknown == nil)
        let named = try Self.report([(["load()", "closure #1 in FileTests.a()"], 1_000)])
        #expect(StallAttribution(named, among: [before]).parts.keys.sorted() == [0])
        let cases = [before, Self.candidate("FileTests.a()")]
        #expect(StallAttribution(named, among: cases).parts.keys.sorted() == [1])
    }

    @Test func `a test that ended before its stall is found on the stack`() throws {
        let report = try Self.report([(["load()", "closure #1 in FileTests.a()"], 1_000)])
        let attribution = StallAttribution(
            report, among: [Self.candidate("FileTests.a()", endedAfter: 5), Self.candidate("FileTests.b()")])
        #expect(attribution.parts.keys.sorted() == [0])
    }
}

@Suite struct CodeTimeTests {
    private static func cause(
        _ kind: StallReport.CauseKind, cpu: Double = 0, queue: Double = 0, blocked: Double = 0, uncertainty: Double = 0,
        throttled: Double? = nil
    ) -> StallReport.Cause {
        StallReport.Cause(
            kind: kind, confidence: .certain, onCPUMilliseconds: cpu, runQueueMilliseconds: queue,
            blockedMilliseconds: blocked, uncertaintyMilliseconds: uncertainty, throttledMilliseconds: throttled
        )
    }

    private static func time(
        _ duration: Double, _ cause: StallReport.Cause?, hasStack: Bool = true, seenBlocked: Double = 0,
        isOfPool: Bool = false
    ) -> CodeTime {
        CodeTime(duration: duration, cause: cause, .init(hasStack: hasStack, blocked: seenBlocked, isOfPool: isOfPool))
    }

    @Test func `time without a CPU does not count`() {
        let time = Self.time(400, Self.cause(.cpuContention, cpu: 60, queue: 340))
        #expect(time.least == 60)
        #expect(time.most == 60)
    }

    @Test func `time blocked that nothing shows is not certain`() {
        let cause = Self.cause(.cpuContention, cpu: 60, queue: 250, blocked: 80)
        let unseen = Self.time(390, cause)
        #expect(unseen.least == 60)
        #expect(unseen.most == 140)
        #expect(Self.time(390, cause, seenBlocked: 30).least == 90)
        #expect(Self.time(390, cause, seenBlocked: 300).least == 140)
        #expect(Self.time(390, Self.cause(.lock, cpu: 60, queue: 150, blocked: 180)).least == 240)
    }

    /// What is the code's at least and at most; `nil` is not compared.
    private static var parts: [(rule: String, time: CodeTime, least: Double?, most: Double?)] {
        [
            (
                "time blocked counts", time(300, cause(.sleep, cpu: 1, queue: 9, blocked: 290), seenBlocked: 280), 291,
                291
            ),
            (
                "throttled time is part of the time without a CPU and counts once",
                time(500, cause(.throttled, cpu: 50, queue: 450, throttled: 440)), nil, 50
            ),
            (
                "a sleep in a throttled group counts",
                time(500, cause(.sleep, queue: 10, blocked: 490, throttled: 480), seenBlocked: 490), 490, nil
            ),
            (
                "uncertain time is not certain to be the code's",
                time(200, cause(.cpu, cpu: 150, queue: 50, uncertainty: 70)), 80, 150
            ),
            (
                "time after the last observation is not certain",
                time(1_924, cause(.cpuContention, cpu: 60, queue: 1_737, blocked: 47)), 60, 187
            ),
            ("an unknown split counts as the code's with a stack", time(120, nil), 120, nil),
            ("an unknown split is uncertain without a stack", time(120, nil, hasStack: false), 0, 120),
            ("a pool without a busy worker waits for a CPU", time(900, nil, isOfPool: true), nil, 0),
            (
                "of a pool only blocked workers are certain",
                time(900, cause(.cpu, cpu: 450, blocked: 450, uncertainty: 900), isOfPool: true), 450, 900
            ),
        ]
    }

    @Test func `other parts of a stall`() {
        for part in Self.parts {
            if let least = part.least { #expect(part.time.least == least, "\(part.rule)") }
            if let most = part.most { #expect(part.time.most == most, "\(part.rule)") }
        }
    }

    @Test func `no part exceeds the duration or is negative`() {
        for queue in [-10.0, 0, 50, 1_000] {
            for uncertainty in [-5.0, 0, 80, 1_000] {
                let cause = Self.cause(.cpu, cpu: 100, queue: queue, blocked: 500, uncertainty: uncertainty)
                let time = Self.time(100, cause)
                #expect(0 <= time.least && time.least <= time.most && time.most <= 100)
            }
        }
    }
}

@Suite struct WatchedFunctionTests {
    private let file = "/app/Tests/FileTests.swift"

    private func frame(_ function: String?, file: String? = "/app/Tests/FileTests.swift") -> StallReport.Frame {
        StallReport.Frame(offset: "0x0", function: function, file: file, isInApp: true, kind: .code)
    }

    @Test(arguments: [
        ("AppTests.FileTests/reads()/FileTests.swift:3:6", "reads()", "FileTests.reads()"),
        ("AppTests.Outer/Inner/reads(_:)/FileTests.swift:3:6", "reads(_:)", "Outer.Inner.reads(_:)"),
        ("AppTests.reads()/FileTests.swift:3:6", "reads()", "reads()"),
        ("AppTests.FileTests/`a file`()/FileTests.swift:3:6", "`a file`()", "FileTests.a file()"),
        ("a form of another version", "reads()", "reads()"),
    ])
    func `a test's id names the function`(id: String, function: String, expected: String) {
        #expect(WatchedFunction(id: id, function: function, file: file).name == expected)
    }

    @Test func `the id of this test has the known form`() throws {
        let test = try #require(Test.current)
        #expect(WatchedFunction(test).name == "WatchedFunctionTests.the id of this test has the known form()")
    }

    @Test func `the function, its closures and functions in it are found`() {
        let function = WatchedFunction(name: "FileTests.reads()", file: file)
        #expect(function.contains(frame("FileTests.reads()")))
        #expect(function.contains(frame("closure #1 in FileTests.reads()")))
        #expect(function.contains(frame("helper #1 () in FileTests.reads()")))
        #expect(function.contains(frame("static Outer.FileTests.reads()")))
        #expect(function.contains(frame("closure #1 in FileTests.reads()", file: nil)))
    }

    @Test func `another function, suite or file is not`() {
        let function = WatchedFunction(name: "FileTests.reads()", file: file)
        #expect(!function.contains(frame("FileTests.writes()")))
        #expect(!function.contains(frame("OtherFileTests.reads()")))
        #expect(!function.contains(frame("FileTests.reads()", file: "/app/Tests/Other.swift")))
        #expect(!function.contains(frame(nil)))
    }
}

@Suite struct HangTimerTests {
    @Test func `a test that ends in time is not reported`() throws {
        let timer = try HangTimer(limit: .max / 4) { _ in HangTimer.Hang(text: "hang") }
        #expect(timer.end() == nil)
    }

    @Test func `a test that does not end is reported once`() throws {
        let reported = Semaphore()
        let timer = try HangTimer(limit: 0) { _ in
            defer { reported.post() }
            return HangTimer.Hang(text: "hang")
        }
        try #require(reported.wait(until: endOfPatience))
        // The thread keeps the text right after it has reported.
        while timer.end() == nil { nap() }
        #expect(timer.end()?.text == "hang")
        #expect(!reported.wait(until: monotonicNow()))
    }
}

@Suite struct HangReportOrderTests {
    @Test func `tests that hang at the same time are reported one after another`() throws {
        let (begun, goOn, done) = (Semaphore(), Semaphore(), Semaphore())
        let order = Mutex<[String]>([])
        let first = try HangTimer(limit: 0) { _ in
            begun.post()
            goOn.wait(until: endOfPatience)
            order.withLock { $0.append("first") }
            return HangTimer.Hang(text: "first")
        }
        try #require(begun.wait(until: endOfPatience))
        let second = try HangTimer(limit: 0) { _ in
            order.withLock { $0.append("second") }
            done.post()
            return HangTimer.Hang(text: "second")
        }
        // The other one's thread has to come to its report meanwhile.
        for _ in 0..<50 { nap() }
        #expect(order.withLock { $0 }.isEmpty)
        goOn.post()
        try #require(done.wait(until: endOfPatience))
        #expect(order.withLock { $0 } == ["first", "second"])
        _ = (first.end(), second.end())
    }
}

@Suite struct StallBudgetTests {
    private func time(_ least: Double, _ most: Double? = nil) -> CodeTime {
        var time = CodeTime(duration: least, cause: nil, .init())
        time.most = most ?? least
        return time
    }

    @Test func `a stall counts from exactly the limit, if it is certainly the code's`() {
        let strict = StallBudget(fail: .milliseconds(100))
        let warning = StallBudget(warn: .milliseconds(50), fail: .milliseconds(100))
        for (time, inStrict, inWarning) in [
            (time(49), nil, nil), (time(50), nil, .warning), (time(99.9), nil, .warning), (time(100), .error, .error),
            // It may be the machine's.
            (time(60, 140), nil, .warning), (time(40, 140), nil, .warning),
        ] as [(CodeTime, Issue.Severity?, Issue.Severity?)] {
            #expect(strict.severity(of: time) == inStrict, "\(time)")
            #expect(warning.severity(of: time) == inWarning, "\(time)")
        }
    }

    @Test func `a stall of one of several tests is an error only if it is one for each`() {
        let strict = StallBudget(fail: .milliseconds(100))
        let lax = StallBudget(fail: .milliseconds(500))
        #expect(StallBudget.severity(of: time(600), inOneOf: [strict, lax]) == .error)
        #expect(StallBudget.severity(of: time(200), inOneOf: [strict, lax]) == .warning)
        #expect(StallBudget.severity(of: time(90), inOneOf: [strict, lax]) == nil)
        #expect(StallBudget.severity(of: time(600), inOneOf: []) == nil)
    }
}
