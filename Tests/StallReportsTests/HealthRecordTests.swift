import Testing

@testable import StallReports

@Suite struct HealthRecordTests {
    private let time = Timestamp(microsecondsSince1970: 1_795_248_000_123_456)

    private func record(
        _ state: HealthState, _ loops: [(String, LoopHealthState)] = [("main", .running)]
    ) -> HealthRecord {
        HealthRecord(
            state: state, checkedAt: time, checkedAtMonotonicMilliseconds: 4_711, progressedAt: time,
            intervalMilliseconds: 1_000,
            process: .init(pid: 4_700, startTicks: 12, bootID: "5c9d", pidNamespace: "pid:[4026531836]"),
            loops: loops.map { HealthRecord.LoopHealth(label: $0.0, state: $0.1, since: time) }
        )
    }

    @Test func `a record survives its JSON`() {
        var record = record(.stalled, [("main", .stalled), ("worker", .running)])
        record.stall = .init(sentence: "main stalled", isOngoing: true, function: "f()", report: "a")
        record.omittedLoops = 3
        record.proof = HealthRecord.Proof(MonitorProof(obstacle: "the monitor is paused"))
        #expect(HealthRecord(jsonData: record.jsonData()) == record)
    }

    @Test func `the JSON is for people, too`() {
        let text = String(decoding: record(.ok).jsonData(), as: UTF8.self)
        #expect(
            text == """
                {
                  "checkedAt" : "2026-11-21T08:00:00.123456Z",
                  "checkedAtMonotonicMilliseconds" : 4711,
                  "intervalMilliseconds" : 1000,
                  "isPaused" : false,
                  "loops" : [
                    {
                      "label" : "main",
                      "since" : "2026-11-21T08:00:00.123456Z",
                      "state" : "running"
                    }
                  ],
                  "omittedLoops" : 0,
                  "process" : {
                    "bootID" : "5c9d",
                    "pid" : 4700,
                    "pidNamespace" : "pid:[4026531836]",
                    "startTicks" : 12
                  },
                  "progressedAt" : "2026-11-21T08:00:00.123456Z",
                  "state" : "ok",
                  "version" : 1
                }

                """
        )
    }

    @Test func `other documents and newer versions are refused`() {
        #expect(HealthRecord(jsonData: Array("{}".utf8)) == nil)
        #expect(HealthRecord(jsonData: []) == nil)
        #expect(HealthRecord(jsonData: record(.ok).jsonData().dropLast(20).map { $0 }) == nil)
        var newer = record(.ok)
        newer.version = 2
        #expect(HealthRecord(jsonData: newer.jsonData()) == nil)
    }

    @Test func `a word of a later version is kept`() throws {
        let record = try #require(HealthRecord(jsonData: record(.init(rawValue: "dreaming")).jsonData()))
        #expect(record.state.rawValue == "dreaming")
        #expect(record.summary == "the state is \"dreaming\", which this version does not know")
    }

    @Test func `each state has a sentence`() {
        #expect(record(.ok).summary == "1 loop makes progress")
        #expect(record(.ok, [("a", .running), ("b", .running)]).summary == "2 loops make progress")
        var paused = record(.ok)
        paused.isPaused = true
        #expect(paused.summary == "1 loop makes progress, while the program has paused the monitor")
        #expect(record(.starting, []).summary == "no loop is watched")
        #expect(record(.ok, []).summary == "no loop is watched now")
        #expect(record(.starting, [("main", .starting)]).summary == "main has not begun the first turn")
        #expect(
            record(.starting, [("a", .starting), ("b", .starting), ("c", .starting)]).summary
                == "a and 2 other loops have not begun the first turn")
        #expect(
            record(.held, [("main", .held)]).summary
                == "a debugger holds a thread: main has not finished a turn in time")
        #expect(record(.stopped).summary == "no monitor runs: the program has stopped it, or has not started it")
        var stalled = record(.stalled, [("main", .stalled)])
        stalled.stall = .init(sentence: "main stalled and has not come back after 812 ms in f()", isOngoing: true)
        #expect(stalled.summary == "main stalled and has not come back after 812 ms in f()")
    }
}

@Suite struct ControlRequestTests {
    @Test(arguments: [ControlRequest.state, .watch, .stacks, .tasks, .capabilities, .proof])
    func `a request is read as it is sent`(
        request: ControlRequest
    ) throws {
        #expect(try ControlRequest(Array(request.line.utf8.dropLast())) == request)
    }

    @Test(arguments: [
        ("", "not a request"), ("state", "not a request"), ("stallwatch 1  state", "not a request"),
        ("stallwatch one state", "not a request"), ("stallwatch 2 state", "has version 1"),
        ("stallwatch 1 memory", "does not know"), ("stallwatch 1 state 1", "does not know"),
        ("stallwatch 1 profile 10 50", "does not know"), ("\u{0}\u{1}", "not a request"),
    ])
    func `another line is refused with a reason`(line: String, reason: String) {
        do throws(ControlRequest.Fault) {
            _ = try ControlRequest(Array(line.utf8))
            Issue.record("accepted: \(line)")
        } catch {
            #expect(error.message.contains(reason))
        }
    }

    @Test func `an answer over the limit becomes an error`() throws {
        let loop = LoopStatistics(label: String(repeating: "x", count: 500))
        let answer = ControlAnswer(pid: 1, loops: [loop])
        #expect(try #require(ControlAnswer(jsonData: answer.jsonLine())).loops == [loop])
        let short = try #require(ControlAnswer(jsonData: answer.jsonLine(limit: 400)))
        #expect(short.loops == nil && short.error == "the answer has more than 400 bytes")
    }
}

@Suite struct StallBaselineTests {
    private let fingerprint = "9f2c41d07a3be815"

    private func day(_ text: String) throws -> CalendarDay { try #require(CalendarDay(text)) }

    private func baseline(until day: String) throws -> StallBaseline {
        var baseline = StallBaseline()
        baseline.add(StallBaseline.Entry(fingerprint: fingerprint, expires: try self.day(day)))
        return baseline
    }

    @Test func `an entry excuses its stall up to and including its day, and has expired then`() throws {
        let baseline = try baseline(until: "2027-03-31")
        #expect(baseline.excuses(fingerprint, on: try day("2027-03-31")))
        #expect(!baseline.excuses(fingerprint, on: try day("2027-04-01")))
        #expect(!baseline.excuses("0000000000000000", on: try day("2027-03-01")))
        #expect(!baseline.excuses(nil, on: try day("2027-03-01")))
        #expect(baseline.expired(fingerprint, on: try day("2027-03-31")) == nil)
        #expect(baseline.expired(fingerprint, on: try day("2027-04-01"))?.expires.description == "2027-03-31")
    }

    @Test func `an entry that exists stays as it is`() throws {
        var baseline = try baseline(until: "2027-03-31")
        baseline.add(StallBaseline.Entry(fingerprint: fingerprint, expires: try day("2029-01-01")))
        #expect(baseline.entries.map(\.expires.description) == ["2027-03-31"])
    }

    @Test func `a written file is read as it was`() throws {
        let entry = StallBaseline.Entry(
            fingerprint: fingerprint, expires: try day("2027-03-31"), loop: "main", culprit: "save(_:)",
            cause: "A \"wait\".")
        var baseline = StallBaseline()
        baseline.add(entry)
        #expect(try StallBaseline(jsonData: baseline.jsonData()) == baseline)
    }

    @Test(arguments: [
        ("", "the file is empty"),
        ("{\"version\": 1}", "stalls"),
        ("{\"version\": 2, \"stalls\": []}", "version is 2, but has to be 1"),
        (#"{"version": 1, "stalls": [{"fingerprint": "9f2c", "expires": "2027-03-31"}]}"#, "stalls[0].fingerprint"),
        (#"{"version": 1, "stalls": [{"fingerprint": "9f2c41d07a3be815", "expires": "soon"}]}"#, "is not a day like"),
        (#"{"version": 1, "stalls": [{"fingerprint": "9f2c41d07a3be815"}]}"#, "expires"),
        (
            #"{"version": 1, "stalls": [{"fingerprint": "9f2c41d07a3be815", "expires": "2027-03-31"}, "#
                + #"{"fingerprint": "9f2c41d07a3be815", "expires": "2027-04-30"}]}"#, "stalls[1].fingerprint"
        ),
    ])
    func `a damaged file is refused with the place of the fault`(json: String, part: String) throws {
        let error = try #require(throws: StallWatchError.self) { try StallBaseline(jsonData: Array(json.utf8)) }
        #expect(error.message.contains(part), "\(error.message)")
    }
}

@Suite struct CalendarDayTests {
    @Test(arguments: ["2027-03-31", "2028-02-29", "1999-12-31"])
    func `a day is read and written`(text: String) {
        #expect(CalendarDay(text)?.description == text)
    }

    @Test(arguments: ["2027-02-29", "2027-13-01", "2027-3-1", "2027-03-31T00:00", "tomorrow", ""])
    func `a day that does not exist is refused`(text: String) {
        #expect(CalendarDay(text) == nil)
    }

    @Test func `days are counted across months`() {
        #expect(CalendarDay("2027-02-20")?.adding(days: 30).description == "2027-03-22")
    }

    @Test func `the last moment of a day belongs to it`() throws {
        let end = try #require(Timestamp("2027-03-31T23:59:59.999999Z"))
        #expect(CalendarDay(end).description == "2027-03-31")
        let early = try #require(Timestamp("1969-12-31T23:59:59.999999Z"))
        #expect(CalendarDay(early).description == "1969-12-31")
    }

    @Test func `days have an order`() throws {
        #expect(try #require(CalendarDay("2027-03-31")) < #require(CalendarDay("2027-04-01")))
    }
}
