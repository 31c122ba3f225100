import Foundation
import Glibc
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// Checks written reports against the published schema with Python's jsonschema.
@Suite struct ReportSchemaTests {
    private let scratch = TemporaryDirectory.ofTest()

    @Test func reportsInEveryStateAreValid() throws {
        let settings = Reporter.Settings.fixture()
        _ = try withReporter(
            [.directory(scratch.path), .ndjson(path: scratch.path + "/all.ndjson")], settings: settings
        ) {
            reporter in
            for function in 0..<4 { reporter.submit(.fixture(function: function)) }
            var failed = StallRecord.fixture(function: 5, state: .abandoned)
            failed.samples[0].stack = .failure(CaptureFailure.noSuchThread)
            reporter.submit(failed)
        }
        let builder = settings.builder()
        try ReportDirectory(path: scratch.path).write(builder.draft(of: .fixture(function: 9, state: .ongoing)))
        #expect(try scratch.reports().count == 6)
        for path in [scratch.path, scratch.path + "/all.ndjson"] {
            let result = try Repository.validateReports(path)
            #expect(result.status == 0, "\(result.text)")
        }
    }

    /// A report with every field of the schema keeps all of them when decoded and encoded, and gains none.
    @Test func `the schema has the fields of the type and no others`() throws {
        let file = scratch.path + "/stall-full.json"
        try AtomicFile.write(Array(fullReport.utf8), to: file)
        let result = try Repository.validateReports(file)
        #expect(result.status == 0, "\(result.text)")
        let report = try StallReport(jsonData: Array(fullReport.utf8))
        let before = try JSONSerialization.jsonObject(with: Data(fullReport.utf8)) as? NSDictionary
        let after = try JSONSerialization.jsonObject(with: Data(report.jsonData())) as? NSDictionary
        #expect(before == after)
        #expect(try keys(ofSchema: Repository.root.path + "/Schemas/stall-report.schema.json") == keys(before))
    }

    @Test func theValidatorFindsFaults() throws {
        let file = scratch.path + "/stall-bad.json"
        let faults = [
            ("\"turn\": 7", "\"turn\": -7"), ("\"kind\": \"stall\"", "\"kind\": \"boredom\""), ("\"repeats\": 3,", ""),
            ("\"hostname\"", "\"host\""), ("2026-11-21T08:00:00.123456Z", "yesterday"),
        ]
        for (right, wrong) in faults {
            try #require(fullReport.contains(right))
            try AtomicFile.replace(file, with: Array(fullReport.replacingOccurrences(of: right, with: wrong).utf8))
            #expect(try Repository.validateReports(file).status == 1, "\(wrong)")
        }
    }

    /// Returns the names of all properties in a schema.
    private func keys(ofSchema path: String) throws -> Set<String> {
        func collect(_ node: Any) -> Set<String> {
            if let list = node as? [Any] { return list.reduce(into: []) { $0.formUnion(collect($1)) } }
            guard let object = node as? [String: Any] else { return [] }
            let properties = object["properties"] as? [String: Any] ?? [:]
            return Set(properties.keys).union(object.values.reduce(into: Set<String>()) { $0.formUnion(collect($1)) })
                .union(properties.values.reduce(into: Set<String>()) { $0.formUnion(collect($1)) })
        }
        return collect(try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path))))
    }

    /// Returns the names of all fields in a report, except keys that are data.
    private func keys(_ report: NSDictionary?) -> Set<String> {
        func collect(_ node: Any) -> Set<String> {
            if let list = node as? [Any] { return list.reduce(into: []) { $0.formUnion(collect($1)) } }
            guard let object = node as? [String: Any] else { return [] }
            return object.reduce(into: Set(object.keys)) { keys, entry in
                if !["metadata", "suppressed", "attributes"].contains(entry.key) {
                    keys.formUnion(collect(entry.value))
                }
            }
        }
        return collect(report as Any)
    }

    /// A report with every field of the schema.
    private let fullReport = """
        {
          "schemaVersion": 1, "id": "01936c1e-7a52-7c3e-9d0e-5f3b8a1c2d4e", "kind": "stall", "state": "abandoned",
          "startedAt": "2026-11-21T08:00:00.123456Z", "durationMilliseconds": 812.5, "thresholdMilliseconds": 250,
          "process": {
            "name": "notes", "pid": 4700, "startedAt": "2026-11-21T07:59:01.000000Z", "startTicks": 123456,
            "executable": "/opt/notes/bin/notes", "architecture": "x86_64", "operatingSystem": "Debian GNU/Linux 12",
            "kernel": "6.18.44", "hostname": "web-3", "bootID": "5c9d0e2a-0000-4000-8000-000000000000",
            "pidNamespace": "pid:[4026531836]"
          },
          "metadata": { "version": "1.4.2" },
          "loop": {
            "label": "main", "kind": "runLoop", "mode": "kCFRunLoopDefaultMode", "turn": 7, "nesting": 0,
            "thread": { "id": 4700, "name": "notes" }
          },
          "startUncertaintyMilliseconds": 12.5, "turns": 9,
          "activity": {
            "turnsPerSecond": 20789.134, "busyShare": 0.99, "cpuShare": 0.367, "isModeEmpty": true, "awaitedMode": "default",
            "isTimerDue": true, "hasMainQueueWork": false,
            "readyDescriptor": "descriptor 7, pipe:[4711]"
          },
          "callout": "timer", "fingerprint": "9f2c41d07a3be815", "repeats": 3,
          "repeated": { "totalMilliseconds": 1200.5, "leastMilliseconds": 300.25, "greatestMilliseconds": 500 },
          "culprit": { "function": "save(_:)", "image": "notes", "file": "/src/NoteStore.swift", "line": 88, "share": 0.71 },
          "missingCulpritReason": "no sample has a stack",
          "context": { "taskID": 12, "taskName": "feed", "label": "GET /feed", "attributes": { "user": "free" },
            "traceID": "4bf92f3577b34da6a3ce929d0e0e4736", "spanID": "00f067aa0ba902b7", "isCut": true, "omittedAttributes": 2 },
          "missingContextReason": "the thread went on before its context was read",
          "cause": {
            "kind": "deadlock", "summary": "Blocked 801 ms.", "confidence": "certain", "onCPUMilliseconds": 9.5,
            "runQueueMilliseconds": 1.5, "blockedMilliseconds": 801, "uncertaintyMilliseconds": 0.5, "kernelShare": 0.25,
            "minorFaults": 3, "majorFaults": 0, "voluntarySwitches": 1, "involuntarySwitches": 2,
            "throttledMilliseconds": 0.5, "stolenMilliseconds": 1.5, "pagedFile": "/data/pages",
            "systemCall": { "number": 202, "name": "futex", "target": "0x7f1c2c0012a0", "omittedPeers": 1,
              "missingPeersReason": "it has ended", "peers": [
              { "role": "holder", "pid": 812, "isThisProcess": true, "thread": { "id": 4703 }, "name": "db", "state": "S",
                "threads": 2, "systemCall": "read", "target": "pipe:[5]", "waitChannel": "pipe_read",
                "runningMilliseconds": 2012.5, "reason": "its call may not be read" } ] },
            "function": "pthread_mutex_lock", "waitChannel": "futex_wait_queue",
            "kernelStack": ["futex_wait_queue"],
            "lock": {
              "kind": "pthreadMutex", "address": "0x7f1c2c0012a0", "function": "pthread_mutex_lock", "label": "wal",
              "isDeadlock": true, "reason": "unknown",
              "owners": [
                { "thread": { "id": 4711, "name": "db-writer" }, "stack": 0, "isRunning": false,
                  "systemCall": { "number": 202, "name": "futex" }, "waitsFor": "pthreadMutex",
                  "waitsForAddress": "0x7f1c2c0012f0", "waitsForLabel": "main",
                  "time": { "observedMilliseconds": 500, "onCPUMilliseconds": 10.5, "runQueueMilliseconds": 480 },
                  "priorityInversion": { "nice": 10, "waiterNice": 0, "queue": "export" } }
              ]
            },
            "pressure": { "cpuSomeAvg10": 0.5, "ioSomeAvg10": 12, "memorySomeAvg10": 0 }
          },
          "samples": [
            { "atMilliseconds": 50.5, "weightMilliseconds": 812.5, "timesSeen": 17, "isEarly": true, "stack": 0, "reason": "a part of the stack is not mapped", "threadState": "blocked",
              "method": "read", "workers": [ { "stack": 0, "threads": [ { "id": 4701, "context": { "label": "GET /feed" } } ] } ], "isValid": true,
              "isComplete": false, "heldMicroseconds": 0, "captureMicroseconds": 182.5 }
          ],
          "otherThreads": [
            { "thread": { "id": 4702 }, "stack": 0, "reason": "unknown", "threadState": "running", "method": "ptrace",
              "heldMicroseconds": 9.5 }
          ],
          "omittedThreads": 4,
          "waits": [
            { "kind": "executor", "task": 7, "name": "feed", "executor": "Cache", "thread": 4702, "stack": 0,
              "function": "load()", "file": "/src/Loader.swift", "line": 40 }
          ],
          "tasks": { "tasks": [
            { "id": 7, "name": "feed", "state": "enqueued", "wait": "executor", "target": 0, "thread": 4702, "parent": 3,
              "group": 1, "stack": 0, "isCanceled": true, "searchedInVain": 1024, "count": 12 } ],
            "executors": [ { "kind": "mainActor", "name": "MainActor", "address": "0x7f00", "thread": 4700 } ],
            "searchedBytes": 1048576, "readMilliseconds": 1.5, "incompleteReason": "memory is swapped out" },
          "history": { "windowMilliseconds": 5000, "omittedLoops": 2, "loops": [
            { "label": "main", "kind": "runLoop", "omitsOlderTurns": true, "turns": [
              { "atMilliseconds": -81.5, "durationMilliseconds": 40.5, "waitedMilliseconds": 3, "isOngoing": true } ] } ] },
          "stacks": [ [0] ],
          "frames": [
            { "image": 0, "offset": "0x1f3a0", "function": "save(_:)", "symbol": "$s5notes4saveyySiF", "isInApp": true, "kind": "code",
              "file": "/src/NoteStore.swift", "line": 88, "column": 9, "isInlined": false, "isDependency": true, "compilerGenerated": "merged", "isRuntimeFrame": false,
              "reason": "unknown", "isTaskStart": false, "isTailCall": false, "isUncertain": true }
          ],
          "images": [ { "name": "notes", "path": "/opt/notes/bin/notes", "buildID": "3b1e", "baseAddress": "0x55d0c8a00000",
                        "isInApp": true, "reason": "unknown" } ],
          "monitor": {
            "version": "0.1.0", "watchdogLateMilliseconds": 0.5, "captureMethods": ["read", "ptrace"],
            "unwinder": "libunwind 1.6.2",
            "suppressed": { "processStopped": 0, "cpuStolen": 0, "suspended": 0, "debugger": 0, "paused": 0, "threadEnded": 0, "repeated": 5, "rateLimit": 1 }
          }
        }
        """
}

/// Decodes untrusted files.
@Suite struct StallReportDecodingTests {
    /// A random number generator with a fixed seed (xorshift64*).
    private struct Repeatable: RandomNumberGenerator {
        var state: UInt64 = 0x9e37_79b9_7f4a_7c15

        mutating func next() -> UInt64 {
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return state &* 0x2545_f491_4f6c_dd1d
        }
    }

    private static var report: StallReport { Reporter.Settings.fixture().builder().report(of: .fixture(function: 1)) }

    @Test func newerWordsAreKeptAndNewerFieldsIgnored() throws {
        var text = String(decoding: Self.report.jsonData(), as: UTF8.self)
        text = text.replacingOccurrences(
            of: "\"kind\" : \"stall\"", with: "\"kind\" : \"boredom\", \"weather\" : { \"kind\" : \"moon\" }")
        text = text.replacingOccurrences(of: "\"method\" : \"read\"", with: "\"method\" : \"guess\"")
        let report = try StallReport(jsonData: Array(text.utf8))
        #expect(report.kind == StallKind(rawValue: "boredom"))
        #expect(report.samples[0].method?.rawValue == "guess")
        #expect(try StallReport(jsonData: report.jsonData()) == report)
    }

    @Test func aNewerSchemaIsRefusedWithAHint() throws {
        for text in [
            "{\"schemaVersion\" : 2}",
            String(decoding: Self.report.jsonData(), as: UTF8.self)
                .replacingOccurrences(of: "\"schemaVersion\" : 1", with: "\"schemaVersion\" : 2"),
        ] {
            let error = #expect(throws: StallWatchError.self) { try StallReport(jsonData: Array(text.utf8)) }
            #expect(error?.message.contains("use a newer StallWatch") == true)
        }
    }

    @Test(arguments: [
        ("\"stack\" : 0", "\"stack\" : 7"), ("\"stack\" : 0", "\"stack\" : -1"), ("\"image\" : 0", "\"image\" : 1"),
        ("\"durationMilliseconds\" : 400", "\"durationMilliseconds\" : -1"),
        ("\"durationMilliseconds\" : 400", "\"durationMilliseconds\" : 1e999"), ("\"pid\" : ", "\"pid\" : 99999999999"),
        ("\"repeats\" : 0", "\"repeats\" : -2"), ("\"schemaVersion\" : 1", "\"schemaVersion\" : 0"),
        ("\"nesting\" : 0", "\"nesting\" : 0.5"),
    ])
    func invalidIndicesAndNumbersAreErrors(right: String, wrong: String) throws {
        let text = String(decoding: Self.report.jsonData(), as: UTF8.self)
        try #require(text.contains(right))
        let error = #expect(throws: StallWatchError.self) {
            try StallReport(jsonData: Array(text.replacingOccurrences(of: right, with: wrong).utf8))
        }
        #expect(error?.code == .unreadableReport)
    }

    /// Decodes 100,000 damaged files, in a separate process so that its memory can be measured.
    @Test func damagedFilesAreErrorsAndCostLittleMemory() async {
        await #expect(processExitsWith: .success) {
            var random = Repeatable()
            let whole = Self.report.jsonData()
            let hostile = Self.hostileFiles
            for number in 0..<100_000 {
                var bytes = whole
                var mustFail = false
                switch number % 4 {
                case 0:
                    bytes = Array(whole.prefix(Int.random(in: 0..<(whole.count - 2), using: &random)))
                    mustFail = true
                case 1:
                    for _ in 0..<Int.random(in: 1...8, using: &random) {
                        bytes[Int.random(in: 0..<bytes.count, using: &random)] ^=
                            1 << UInt8.random(in: 0..<8, using: &random)
                    }
                case 2:
                    let from = Int.random(in: 0..<bytes.count, using: &random)
                    let part = bytes[from..<min(from + 40, bytes.count)]
                    bytes.insert(contentsOf: part, at: Int.random(in: 0..<bytes.count, using: &random))
                default:
                    // Each large file once, the small ones repeatedly.
                    bytes = hostile[number < 4 * hostile.count ? number / 4 : number / 4 % 8]
                    mustFail = true
                }
                do throws(StallWatchError) {
                    let report = try StallReport(jsonData: bytes)
                    guard !mustFail, report.fault == nil else { Glibc.exit(2) }
                } catch {
                    guard error.code == .unreadableReport, !error.description.isEmpty else { Glibc.exit(3) }
                }
            }
            let status = readSmallFile("/proc/self/status") ?? ""
            let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }.flatMap {
                Int($0.filter(\.isNumber))
            }
            // At most 16 MiB of JSON, plus the decoder's memory for half a million values.
            guard let peak, peak < 400_000 else {
                print("peak \(peak ?? 0) kB")
                Glibc.exit(4)
            }
        }
    }

    @Test func tooManyOrTooDeepValuesAreRefused() throws {
        let many = "[" + String(repeating: "0,", count: JSONBounds.maximumValues) + "0]"
        let deep = String(repeating: "{\"a\":", count: JSONBounds.maximumDepth + 1)
        for (text, word) in [(many, "values"), (deep, "levels deep")] {
            let error = #expect(throws: StallWatchError.self) { try StallReport(jsonData: Array(text.utf8)) }
            #expect(error?.code == .unreadableReport)
            #expect(error?.message.contains(word) == true)
        }
    }

    @Test func commasAndBracketsInStringsDoNotCount() {
        let bounds = JSONBounds(Array(#"{ "a[{," : [1, "\"],[", "\\"], "b" : { } }"#.utf8))
        #expect(bounds.values == 6)
        #expect(bounds.depth == 2)
        #expect(bounds.excess == nil)
    }

    /// A monitor's largest report is far below the limits.
    @Test func aReportOfTwentyStacksOf512FramesIsRead() throws {
        var report = Self.report
        let frame = try #require(report.frames.first)
        report.frames = (0..<20 * 512).map { number in
            var other = frame
            other.offset = .init(UInt64(number + 0x10000))
            (other.file, other.line, other.column) = ("/src/app/Sources/App/Feature\(number).swift", number, 9)
            return other
        }
        report.stacks = (0..<20).map { stack in (0..<512).map { stack * 512 + $0 } }
        let json = report.jsonData()
        #expect(JSONBounds(json).values < JSONBounds.maximumValues / 3)
        #expect(try StallReport(jsonData: json) == report)
    }

    private static var hostileFiles: [[UInt8]] {
        let texts = [
            "", "null", "[]", "{}", "{\"schemaVersion\":1e400}", "\u{0}", "{\"id\":\"\\ud800\"}",
            "{\"schemaVersion\":18446744073709551616}",
            String(repeating: "[", count: StallReport.maximumBytes), String(repeating: "{\"a\":", count: 1 << 20),
            "{\"stacks\":[" + String(repeating: "[],", count: 4 << 20) + "[]]}",
            // Just below the limits.
            "{\"stacks\":[" + String(repeating: "[],", count: 240_000) + "[]]}",
            "{\"metadata\":{" + String(repeating: "\"\":\"\",", count: 490_000) + "\"\":0}}",
            "{\"stacks\":[[" + String(repeating: "0,", count: 7 << 20) + "0]]}",
            "\"" + String(repeating: "\\u0000", count: 2 << 20) + "\"",
            String(repeating: " ", count: StallReport.maximumBytes + 1),
        ]
        return texts.map { Array($0.utf8) } + [
            [0xff, 0xfe, 0x00], [0xef, 0xbb, 0xbf], Array(repeating: 0xc0, count: 1 << 20),
        ]
    }
}
