import Testing

@testable import StallReports

@Suite struct HealthRecordTests {
    private let time = Timestamp(microsecondsSince1970: 1_795_248_000_123_456)

    private func record(
        _ state: HealthRecord.State, _ loops: [(String, HealthRecord.LoopState)] = [("main", .running)]
    ) -> HealthRecord {
        HealthRecord(
            state: state, checkedAt: time, checkedAtMonotonicMilliseconds: 4_711, progressedAt: time,
            intervalMilliseconds: 1_000,
            process: .init(pid: 4_700, startTicks: 12, bootID: "5c9d", pidNamespace: "pid:[4026531836]"),
            loops: loops.map { HealthRecord.Loop(label: $0.0, state: $0.1, since: time) }
        )
    }

    @Test func `a record survives its JSON`() {
        var record = record(.stalled, [("main", .stalled), ("worker", .running)])
        record.stall = .init(sentence: "main stalled", isOngoing: true, function: "f()", report: "a")
        record.omittedLoops = 3
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
        #expect(record(.starting, [("main", .starting)]).summary == "main has not begun the first turn")
        #expect(
            record(.starting, [("a", .starting), ("b", .starting), ("c", .starting)]).summary
                == "a and 2 other loops have not begun the first turn")
        #expect(
            record(.held, [("main", .held)]).summary
                == "a debugger holds a thread: main has not finished a turn in time")
        #expect(
            record(.stopped).summary == "no monitor runs: the program has stopped it, or has not started it")
        var stalled = record(.stalled, [("main", .stalled)])
        stalled.stall = .init(sentence: "main stalled and has not come back after 812 ms in f()", isOngoing: true)
        #expect(stalled.summary == "main stalled and has not come back after 812 ms in f()")
    }
}
