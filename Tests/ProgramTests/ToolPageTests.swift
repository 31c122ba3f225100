import Foundation
import Testing
import TestSupport

/// The page of `stallwatch html` in a real browser: headless Chromium, used by keyboard.
@Suite(.needsBrowser) struct ToolPageTests {
    private let directory = TemporaryDirectory.ofTest()

    /// Lets a program use the page, which has to find nothing wrong; returns its output.
    @discardableResult
    private func read(with program: String, _ arguments: [String]) throws -> String {
        let page = try Tool.reader(program, [directory.path + "/page.html"] + arguments)
        #expect(page.status == 0, "\(page.text)")
        return page.text
    }

    /// Makes reports up, one a line; returns the lines.
    private func makeUp(_ count: Int, to name: String) throws -> [Substring] {
        try Command(
            program: Command.product("stallwatch-scenarios"),
            arguments: ["generate", "--reports", "\(count)", "--seed", "1", "--ndjson", directory.path(name)]
        ).succeed()
        return try String(contentsOfFile: directory.path(name), encoding: .utf8).split(separator: "\n")
    }

    /// At six widths, light and dark, and without scripts.
    @Test(arguments: [5, 500])
    func totalsFiltersLinksAndLayout(count: Int) throws {
        #expect(try makeUp(count, to: "reports.ndjson").count == count)
        let reports = directory.path("reports.ndjson")
        try Tool.run(["html", reports, "-o", directory.path + "/page.html"])
        let top = try directory.write("top.json", Tool.run(["top", reports, "--json"]))
        let text = try read(with: "use-page.py", [reports, top, Python.axe])
        let figures = text.split { !$0.isNumber }.compactMap { Int($0) }
        try #require(figures.count == 3)
        #expect(figures[0] == count)
        // 20,000 reports had 4.1 MB, and loaded in 1.4 s beside other work on two cores.
        #expect(figures[1] < 6_000_000)
        #expect(figures[2] < 10_000)
    }

    @Test func theDetailHasWhatShowHas() throws {
        let loops = 12
        try DetailedReport.write(to: directory.path, loops: loops - 1)
        try Tool.run([
            "html", directory.path + "/reports.ndjson", "--source-root", directory.path, "-o",
            directory.path + "/page.html",
        ])
        let words = [
            "pay() \(DetailedReport.hostile)", "Wallet.swift:3", "Waited for a mutex held by thread 71 \"writer <b>\".",
            "held by thread 71 “writer <b>”, which is in fsync(/var/lib/notes/wal), in Writer.flush() (Wallet.swift:4)",
            "thread 71 “writer <b>”, blocked, in fsync(/var/lib/notes/wal)", "2 × the thread did not stop in time",
            "ledger.lock() // \(DetailedReport.hostile)", "release=2.0 \(DetailedReport.hostile)", "Writer.flush()",
            "2 turns, at most 60 ms", "db \(DetailedReport.hostile)", "1 turn, at most 30.00 s",
        ]
        try words.joined(separator: "\n").write(toFile: directory.path + "/words", atomically: true, encoding: .utf8)
        let source = DetailedReport.source(in: directory.path)
        try read(with: "read-detail.py", [directory.path + "/words", String(loops), source])
        // Without the source lines, for a page that leaves the house.
        try Tool.run(["html", directory.path + "/reports.ndjson", "--no-source", "-o", directory.path + "/page.html"])
        let bare = try String(contentsOfFile: directory.path + "/page.html", encoding: .utf8)
        #expect(!bare.contains("ledger.lock()"))
    }

    @Test func aComparisonIsRedAndBlue() throws {
        let lines = try makeUp(200, to: "all.ndjson")
        // Stalls by locks are new, those by files are gone, and the others are on both sides.
        let sides = try ["lock", "io"].map { missing in
            let own = lines.filter { !$0.contains("\"kind\":\"\(missing)\"") }
            return try directory.write("without-\(missing).ndjson", own.joined(separator: "\n"))
        }
        try Tool.run(["html", sides[0], sides[1], "-o", directory.path + "/page.html"])
        try Tool.run(["diff", sides[0], sides[1], "--json"])
            .write(toFile: directory.path + "/diff.json", atomically: true, encoding: .utf8)
        try read(with: "compare-page.py", [directory.path + "/diff.json"])
    }
}

/// A report with everything that a page can show, and with texts that would be markup or code if the page took them so.
enum DetailedReport {
    /// A script that leaves a mark if a browser runs it.
    static let hostile = "</script><script>window.wasRun = true</script><img src=x onerror='window.wasRun = true'>"

    /// Writes the report, with shorter stalls of `loops` other loops, and a source file for its culprit.
    static func write(to directory: String, loops: Int) throws {
        let source = source(in: directory)
        try FileManager.default.createDirectory(
            atPath: directory + "/Sources/Notes App", withIntermediateDirectories: true)
        try "func pay() {\n    let price = total()\n    ledger.lock() // \(hostile)\n    ledger.add(price)\n}\n"
            .write(toFile: source, atomically: true, encoding: .utf8)
        let long = try line(number: 0, label: "main", milliseconds: 60_000, source: source)
        let short = try (0..<loops).map {
            try line(number: $0 + 1, label: "worker-\($0)", milliseconds: 300 + $0, source: source)
        }
        try ([long] + short).map { $0 + "\n" }.joined()
            .write(toFile: directory + "/reports.ndjson", atomically: true, encoding: .utf8)
    }

    static func source(in directory: String) -> String { directory + "/Sources/Notes App/Wallet.swift" }

    private static func line(number: Int, label: String, milliseconds: Int, source: String) throws -> String {
        let frames: [[String: Any]] = [
            frame("futex_wait", "libc.so.6"),
            frame("pthread_mutex_lock", "libc.so.6"),
            frame("pay() \(hostile)", "notes", file: source, line: 3, isInApp: true),
            frame("swift::runJob", "libswift_Concurrency.so", isRuntimeFrame: true),
            frame("thunk for closure", "notes", isRuntimeFrame: true),
            frame("main", "notes", file: source, line: 1, isInApp: true),
            frame("Writer.flush()", "notes", file: source, line: 4, isInApp: true),
            frame("total()", "notes", file: source, line: 2, isInApp: true),
        ]
        let lock: [String: Any] = [
            "kind": "pthreadMutex", "function": "pthread_mutex_lock", "address": "0x10", "isDeadlock": false,
            "owners": [
                [
                    "thread": ["id": 71, "name": "writer <b>"], "stack": 1, "isRunning": false,
                    "systemCall": ["number": 74, "name": "fsync", "target": "/var/lib/notes/wal"],
                ]
            ],
        ]
        let report: [String: Any] = [
            "schemaVersion": 1, "id": "019b0000-0000-7000-8000-\(String(1_000_000_000_000 + number).dropFirst())",
            "kind": "stall", "state": "ended", "startedAt": "2026-11-21T08:00:\(10 + number).000000Z",
            "durationMilliseconds": milliseconds, "thresholdMilliseconds": 250,
            "process": [
                "name": "notes", "pid": 7, "executable": "/opt/notes", "architecture": "x86_64", "kernel": "6",
                "hostname": "h",
            ],
            "metadata": ["release": "2.0 \(hostile)"],
            "loop": [
                "label": label, "kind": "runLoop", "turn": 1, "nesting": 0, "thread": ["id": 7, "name": "notes"],
            ],
            "fingerprint": "00000000000000\(10 + number)", "repeats": 0,
            "culprit": ["function": "pay() \(hostile)", "image": "notes", "file": source, "line": 3, "share": 1],
            "cause": [
                "kind": "lock", "summary": "Waited for a mutex held by thread 71 \"writer <b>\".",
                "confidence": "certain",
                "onCPUMilliseconds": 1, "runQueueMilliseconds": 2, "blockedMilliseconds": milliseconds - 3,
                "uncertaintyMilliseconds": 0, "minorFaults": 0, "majorFaults": 0, "voluntarySwitches": 1,
                "involuntarySwitches": 0, "lock": lock, "kernelStack": ["futex_do_wait", "do_futex"],
            ],
            "samples": [
                sample(at: 250, stack: 2), sample(at: 500, stack: 0),
                sample(at: 750, stack: nil, reason: "the thread did not stop in time"),
                sample(at: 900, stack: nil, reason: "the thread did not stop in time"),
            ],
            "otherThreads": [
                [
                    "thread": ["id": 71, "name": "writer <b>"], "threadState": "blocked", "stack": 1, "method": "read",
                    "heldMicroseconds": 0,
                    "systemCall": ["number": 74, "name": "fsync", "target": "/var/lib/notes/wal"],
                ]
            ],
            "history": [
                "windowMilliseconds": 5_000,
                "loops": [
                    history("main", [(-2_000, 40), (-1_000, 60)]), history("db \(hostile)", [(100, 30_000)]),
                    history("idle", []),
                ],
            ],
            "stacks": [[0, 1, 2, 3, 4, 5], [6], [7, 2, 5]], "frames": frames,
            "images": ["libc.so.6", "notes", "libswift_Concurrency.so"].enumerated().map { number, name in
                ["name": name, "path": "/opt/\(name)", "buildID": "ab0\(number)", "baseAddress": "0x1000"]
            },
            "monitor": ["version": "0.1.0", "watchdogLateMilliseconds": 0, "suppressed": [String: Int]()],
        ]
        return String(decoding: try JSONSerialization.data(withJSONObject: report), as: UTF8.self)
    }

    private static func frame(
        _ function: String, _ image: String, file: String? = nil, line: Int? = nil, isInApp: Bool = false,
        isRuntimeFrame: Bool = false
    ) -> [String: Any] {
        var frame: [String: Any] = [
            "function": function,
            "image": ["libc.so.6", "notes", "libswift_Concurrency.so"].firstIndex(of: image) ?? 0,
            "offset": "0x\(String(4_096 + function.utf8.count, radix: 16))", "isInApp": isInApp, "kind": "code",
        ]
        if isRuntimeFrame { frame["isRuntimeFrame"] = true }
        if let file, let line {
            frame["file"] = file
            frame["line"] = line
        }
        return frame
    }

    private static func history(_ label: String, _ turns: [(at: Int, milliseconds: Int)]) -> [String: Any] {
        [
            "label": label, "kind": "runLoop",
            "turns": turns.map {
                ["atMilliseconds": $0.at, "durationMilliseconds": $0.milliseconds, "waitedMilliseconds": 0]
            },
        ]
    }

    private static func sample(at milliseconds: Int, stack: Int?, reason: String? = nil) -> [String: Any] {
        var sample: [String: Any] = [
            "atMilliseconds": milliseconds, "isValid": stack != nil, "isComplete": stack != nil, "heldMicroseconds": 0,
            "captureMicroseconds": 90,
        ]
        if let stack { sample["stack"] = stack }
        if let reason { sample["reason"] = reason }
        return sample
    }
}
