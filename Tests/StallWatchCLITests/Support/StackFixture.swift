import StallReports

@testable import StallWatchCLI

/// Reports that are built from short descriptions of stacks.
enum StackFixture {
    /// A sample: its time, its functions from the innermost outwards, and whether it shows the stalled turn.
    struct Sample {
        var at: Double
        var stack: [String]?
        var isValid = true
        var isComplete = true
        /// Worker threads by stack, for a pool.
        var workers: [(stack: [String]?, threads: Int)] = []
    }

    /// A report.
    ///
    /// `work` is a function of the app, `libc!wait` a function of a library, `~thunk` a runtime frame, and `^part` a
    /// function that is inlined into the next one.
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
        return """
            {"image":\(isInApp ? 0 : 1),"offset":"0x\(offset)","function":\(JSONText(.string(text)).text),\
            "file":"Sources/\(text.utf8.count).swift","line":\(text.utf8.count),"isInApp":\(isInApp),"isRuntimeFrame":\(isRuntimeFrame),\
            "isInlined":\(isInlined),"kind":"code"}
            """
    }
}

extension JSONText {
    var text: String { String(decoding: bytes, as: UTF8.self) }
}
