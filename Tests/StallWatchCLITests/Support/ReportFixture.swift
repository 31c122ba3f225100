import Foundation
import StallReports

@testable import StallWatchCLI

/// A report's JSON; a test sets the fields that it needs.
struct ReportFixture {
    var number = 0
    var kind = "stall"
    var state = "ended"
    var startedAt = "2026-11-21T08:00:00.123456Z"
    var milliseconds = 500.0
    var process = "notes"
    var pid: Int32 = 4700
    var metadata = ["version": "1.4.2"]
    var loop = "main"
    var fingerprint: String? = "9f2c41d07a3be815"
    var repeats = 0
    /// The total, the least and the greatest duration of the repeats, in milliseconds.
    var repeated: [Double]?
    var function = "NoteStore.save(_:)"
    var file = "/src/notes/NoteStore.swift"
    var cause = "lock"
    /// The process's start time in clock ticks since the boot.
    var startTicks: UInt64 = 123_456
    var bootID = "5c9d0e2a-0000-4000-8000-000000000000"
    var hostname = "web-3"
    var pidNamespace: String?
    var context: String?
    var missingSamplesReason: String?
    /// How long others waited for the loop, in milliseconds.
    var harm: Double?

    var id: String { "01936c1e-7a52-7c3e-9d0e-" + String(repeating: "0", count: 12 - "\(number)".count) + "\(number)" }

    var fileName: String {
        "stall-\(startedAt.filter { $0 != "-" && $0 != ":" })-\(id.suffix(12)).json"
    }

    private var repeatedJSON: String {
        guard let repeated else { return "" }
        let names = ["totalMilliseconds", "leastMilliseconds", "greatestMilliseconds"]
        return "\"repeated\": {" + zip(names, repeated).map { "\"\($0)\": \($1)" }.joined(separator: ", ") + "},"
    }

    /// Indented, as in a file of its own.
    var json: String {
        let fingerprint = self.fingerprint.map { "\"fingerprint\": \"\($0)\"," } ?? ""
        let missing = missingSamplesReason.map { "\"missingSamplesReason\": \"\($0)\"," } ?? ""
        let victims = harm.map { "\"victims\": { \"timers\": 0, \"totalWaitMilliseconds\": \($0) }," } ?? ""
        let context = self.context.map { "\"context\": \($0)," } ?? ""
        let metadata = self.metadata.sorted { $0.key < $1.key }.map { "\"\($0)\": \"\($1)\"" }.joined(separator: ", ")
        return """
            {
              "schemaVersion": 1,
              "id": "\(id)",
              "kind": "\(kind)",
              "state": "\(state)",
              "startedAt": "\(startedAt)",
              "durationMilliseconds": \(milliseconds),
              "thresholdMilliseconds": 250,
              "process": {
                "name": "\(process)", "pid": \(pid), "startedAt": "2026-11-21T07:00:00.000000Z", "startTicks": \(startTicks),
                "executable": "/opt/notes/bin/notes", "architecture": "x86_64", "kernel": "6.18.44",
                "hostname": "\(hostname)", "bootID": "\(bootID)"\(pidNamespace.map { ", \"pidNamespace\": \"\($0)\"" } ?? "")
              },
              "metadata": { \(metadata) },
              "loop": {
                "label": "\(loop)", "kind": "runLoop", "turn": 7, "nesting": 0, "thread": { "id": 4700, "name": "notes" }
              },
              "callout": "timer", \(fingerprint) \(context) \(missing) \(victims) "repeats": \(repeats), \(repeatedJSON)
              "culprit": { "function": "\(function)", "image": "notes", "file": "\(file)", "line": 88 },
              "cause": {
                "kind": "\(cause)", "summary": "Blocked for 480 of 500 ms in pthread_mutex_lock.", "confidence": "certain",
                "onCPUMilliseconds": 15, "runQueueMilliseconds": 5, "blockedMilliseconds": 480,
                "uncertaintyMilliseconds": 0.5, "minorFaults": 3, "majorFaults": 0, "voluntarySwitches": 1,
                "involuntarySwitches": 2, "systemCall": { "number": 202, "name": "futex", "target": "0x7f1c2c0012a0" },
                "lock": {
                  "kind": "pthreadMutex", "address": "0x7f1c2c0012a0", "function": "pthread_mutex_lock", "isDeadlock": false,
                  "owners": [
                    { "thread": { "id": 4711, "name": "db-writer" }, "stack": 1, "isRunning": false,
                      "systemCall": { "number": 230, "name": "clock_nanosleep", "target": "625 ms" } }
                  ]
                }
              },
              "samples": [
                { "atMilliseconds": 250.5, "stack": 0, "threadState": "blocked", "method": "read", "isValid": true,
                  "isComplete": true, "heldMicroseconds": 0, "captureMicroseconds": 182.5 },
                { "atMilliseconds": 375.5, "stack": 0, "threadState": "blocked", "method": "read", "isValid": true,
                  "isComplete": true, "heldMicroseconds": 0, "captureMicroseconds": 180 }
              ],
              "stacks": [ [0, 1, 2, 3], [4] ],
              "frames": [
                { "image": 1, "offset": "0x8a1c4", "function": "pthread_mutex_lock", "isInApp": false, "kind": "code" },
                { "image": 0, "offset": "0x1f3a0", "function": "\(function)", "isInApp": true, "kind": "code",
                  "file": "\(file)", "line": 88 },
                { "image": 1, "offset": "0x3e0", "function": "__CFRunLoopRun", "isInApp": false, "isRuntimeFrame": true, "kind": "code" },
                { "image": 0, "offset": "0x2f3a0", "isInApp": true, "kind": "code" },
                { "image": 0, "offset": "0x3f3a0", "function": "writeWAL()", "isInApp": true, "kind": "code" }
              ],
              "images": [
                { "name": "notes", "path": "/opt/notes/bin/notes", "buildID": "3b1e", "baseAddress": "0x55d0c8a00000", "isInApp": true },
                { "name": "libc.so.6", "path": "/usr/lib/libc.so.6", "buildID": "9a7c", "baseAddress": "0x7f1c31400000" }
              ],
              "monitor": {
                "version": "0.1.0", "watchdogLateMilliseconds": 0.5, "captureMethods": ["read", "ptrace"],
                "suppressed": { "repeated": 5 }
              }
            }

            """
    }

    /// On one line, as in an NDJSON file.
    var line: String { json.split(separator: "\n").joined() + "\n" }

    var bytes: [UInt8] { Array(json.utf8) }
}

extension StallProfile {
    /// Two loops; one stall with two samples, one with an inlined function, and one without a stack.
    static func fixture() throws -> StallProfile {
        var profile = StallProfile()
        profile.add(
            try StackFixture.report(
                1_000, startedAt: "2026-11-21T08:00:01.000000Z",
                [.init(at: 250, stack: ["libc!wait", "save", "main"]), .init(at: 750, stack: ["parse", "main"])]
            )
        )
        profile.add(
            try StackFixture.report(
                300.25, startedAt: "2026-11-21T08:00:00.000000Z", cause: "lock",
                [.init(at: 250, stack: ["^copy", "save", "main"])]
            )
        )
        profile.add(try StackFixture.report(0.5, loop: "other loop", cause: nil, []))
        return profile
    }
}

/// Reports that are built from short descriptions of stacks.
enum StackFixture {
    /// A sample: its time, its functions from the innermost outwards, and whether it shows the stalled turn.
    struct Sample {
        var at: Double
        var stack: [String]?
        var isValid = true
        var isComplete = true
        var workers: [(stack: [String]?, threads: Int)] = []
    }

    /// A report; `work` is a function of the app, `libc!wait` a function of a library, `~thunk` a runtime frame, and
    /// `^part` a function that is inlined into the next one.
    static func report(
        _ milliseconds: Double, loop: String = "main", startedAt: String = "2026-11-21T08:00:00.000000Z",
        fingerprint: String? = "00000000000000aa", cause: String? = "cpu", base: String = "0x1000", _ samples: [Sample]
    ) throws -> StallReport {
        var frames: [String] = []
        var indices: [String: Int] = [:]
        var stacks: [String] = []
        func stack(_ names: [String]?) -> String? {
            guard let names else { return nil }
            let list = names.enumerated().map { place, name -> Int in
                // An inlined function has the address of the function that contains it.
                let own = names[place...].first { !$0.hasPrefix("^") } ?? name
                let key = name + " " + own
                if let known = indices[key] { return known }
                indices[key] = frames.count
                frames.append(frame(name, offset: String(own.utf8.reduce(4_096) { $0 + Int($1) }, radix: 16)))
                return frames.count - 1
            }
            stacks.append("[\(list.map(String.init).joined(separator: ","))]")
            return String(stacks.count - 1)
        }
        var next = 10
        let lines = samples.map { sample in
            let workers = sample.workers.map { group in
                let threads = (0..<group.threads).map { _ -> String in
                    next += 1
                    return "{\"id\":\(next)}"
                }
                return "{\(member("stack", stack(group.stack)))\"threads\":[\(threads.joined(separator: ","))]}"
            }
            return """
                {\(member("stack", stack(sample.stack)))"atMilliseconds":\(sample.at),"isValid":\(sample.isValid),\
                "isComplete":\(sample.isComplete),"workers":[\(workers.joined(separator: ","))],"heldMicroseconds":0,\
                "captureMicroseconds":1}
                """
        }
        let causeText = """
            "cause":{"kind":"\(cause ?? "")","summary":"On CPU.","confidence":"certain","onCPUMilliseconds":\(milliseconds),\
            "runQueueMilliseconds":0,"blockedMilliseconds":0,"uncertaintyMilliseconds":0,"minorFaults":0,"majorFaults":0,\
            "voluntarySwitches":0,"involuntarySwitches":0},
            """
        let json = """
            {"schemaVersion":1,"id":"019a0000-0000-7000-8000-000000000001","kind":"stall","state":"ended",
            "startedAt":"\(startedAt)","durationMilliseconds":\(milliseconds),"thresholdMilliseconds":250,
            "process":{"name":"app","pid":7,"executable":"/opt/app","architecture":"x86_64","kernel":"6","hostname":"h"},
            "metadata":{},"loop":{"label":"\(loop)","kind":"runLoop","turn":1,"nesting":0,"thread":{"id":7}},
            \(fingerprint.map { "\"fingerprint\":\"\($0)\"," } ?? "")\(cause == nil ? "" : causeText)"repeats":0,
            "samples":[\(lines.joined(separator: ","))],"stacks":[\(stacks.joined(separator: ","))],
            "frames":[\(frames.joined(separator: ","))],
            "images":[\(image("app", base)),\(image("libc", base))],
            "monitor":{"version":"0","watchdogLateMilliseconds":0,"suppressed":{}}}
            """
        return try StallReport(jsonData: Array(json.utf8))
    }

    private static func member(_ name: String, _ value: String?) -> String { value.map { "\"\(name)\":\($0)," } ?? "" }

    private static func image(_ name: String, _ base: String) -> String {
        "{\"name\":\"\(name)\",\"path\":\"/opt/\(name)\",\"buildID\":\"b1\(name.utf8.count)\",\"baseAddress\":\"\(base)\"}"
    }

    private static func frame(_ name: String, offset: String) -> String {
        let isRuntimeFrame = name.hasPrefix("~")
        let isInlined = name.hasPrefix("^")
        let parts = name.drop { $0 == "~" || $0 == "^" }.split(separator: "!")
        let isInApp = parts.count == 1
        let text = parts.last.map(String.init) ?? ""
        let quoted = String(decoding: JSONOutput.bytes(text, isIndented: false).dropLast(), as: UTF8.self)
        return """
            {"image":\(isInApp ? 0 : 1),"offset":"0x\(offset)","function":\(quoted),\
            "file":"Sources/\(text.utf8.count).swift","line":\(text.utf8.count),"isInApp":\(isInApp),"isRuntimeFrame":\(isRuntimeFrame),\
            "isInlined":\(isInlined),"kind":"code"}
            """
    }
}
