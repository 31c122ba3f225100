import StallReports

/// The made-up stack of a kind of stalls, and a report with it.
struct GeneratedStack {
    private static let types = [
        "NoteStore", "SyncEngine", "SearchIndex", "MailBox", "ImageCache", "Renderer", "Session", "Importer", "Ledger",
        "Router",
    ]
    private static let verbs = [
        "save", "load", "merge", "reindex", "decode", "flush", "layout", "resolve", "verify", "render",
    ]
    private static let nouns = [
        "Notes", "Account", "Thumbnails", "Headers", "Page", "Changes", "Attachments", "Tokens",
    ]
    private static let images = ["notes", "libFoundation.so", "libc.so.6", "libdispatch.so", "libswiftCore.so"]
    private static let callout = "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__"

    /// A cause with the call in which the thread is.
    private struct Reason {
        var kind: StallReport.CauseKind
        var call: StallReport.SystemCall?
        var function: String
        var summary: String
        /// The shares of the time on a CPU and in the run queue.
        var onCPU: Double
        var runQueue: Double
    }

    private static let reasons = [
        Reason(
            kind: .lock, call: .init(number: 202, name: "futex", target: "0x7f1c2c0012a0"),
            function: "pthread_mutex_lock",
            summary: "Blocked in pthread_mutex_lock, whose owner is in write(2) of /var/lib/notes/wal.", onCPU: 0.01,
            runQueue: 0.01),
        Reason(
            kind: .io, call: .init(number: 0, name: "read", target: "/var/lib/notes/catalogue.bin"), function: "read",
            summary: "In read(2) of /var/lib/notes/catalogue.bin.", onCPU: 0.04, runQueue: 0.01),
        Reason(kind: .cpu, call: nil, function: "memmove", summary: "On a CPU.", onCPU: 0.96, runQueue: 0.03),
        Reason(
            kind: .cpuContention, call: nil, function: "memcmp",
            summary: "Ready to run while other threads used the CPUs.",
            onCPU: 0.2, runQueue: 0.78),
        Reason(
            kind: .sleep, call: .init(number: 230, name: "clock_nanosleep", target: nil), function: "usleep",
            summary: "Slept in usleep.", onCPU: 0, runQueue: 0),
        Reason(
            kind: .paging, call: nil, function: "memcpy", summary: "Waited for pages of /opt/notes/bin/notes.",
            onCPU: 0.1, runQueue: 0.02),
    ]

    private let reason: Reason
    private let loop: String
    private let culprit: String
    private let file: String
    private let frames: [StallReport.Frame]

    init(number: Int, using random: inout SplitMix64) {
        // Only non-empty lists, so there is always an element.
        func one<Element>(of list: [Element], _ random: inout SplitMix64) -> Element {
            list[Int.random(in: 0..<list.count, using: &random)]
        }
        reason = one(of: Self.reasons, &random)
        loop = one(of: ["main", "main", "main", "storage", "network"], &random)
        let type = one(of: Self.types, &random)
        culprit = "\(type).\(one(of: Self.verbs, &random))\(one(of: Self.nouns, &random))\(number)(_:)"
        file = "/src/notes/Sources/Notes/\(type).swift"
        var frames = [
            StallReport.Frame(
                image: 2, offset: "0x\(String(Int.random(in: 0x1000...0xfffff, using: &random), radix: 16))",
                function: reason.function, symbol: reason.function, isInApp: false, kind: .code)
        ]
        for depth in 0..<Int.random(in: 14...40, using: &random) {
            let isInApp = depth < 2 || Double.random(in: 0..<1, using: &random) < 0.3
            let image = isInApp ? 0 : Int.random(in: 1...4, using: &random)
            let name =
                depth == 0
                ? culprit
                : "\(one(of: Self.types, &random)).\(one(of: Self.verbs, &random))\(one(of: Self.nouns, &random))(_:with:)"
            let symbol = "$s5notes\(name.count)\(name.prefix { $0 != "(" })yySS_SitYaKF"
            frames.append(
                StallReport.Frame(
                    image: image, offset: "0x\(String(Int.random(in: 0x1000...0xffffff, using: &random), radix: 16))",
                    function: name, symbol: symbol, file: isInApp ? file : nil,
                    line: isInApp ? .random(in: 10...900, using: &random) : nil, column: isInApp ? 17 : nil,
                    isInApp: isInApp,
                    kind: .code
                ))
        }
        for function in [Self.callout, "__CFRunLoopDoTimers", "__CFRunLoopRun", "CFRunLoopRunSpecific"] {
            frames.append(
                StallReport.Frame(
                    image: 1, offset: "0x8a1c4", function: function, symbol: function, isInApp: false,
                    isRuntimeFrame: true, kind: .code))
        }
        frames.append(
            StallReport.Frame(
                image: 0, offset: "0x2f3a0", function: "main", symbol: "main",
                file: "/src/notes/Sources/Notes/main.swift",
                line: 12, isInApp: true, kind: .code))
        self.frames = frames
    }

    /// A report in which all that differs between stalls of the kind has a placeholder.
    func report(using random: inout SplitMix64) -> StallReport {
        var frames = frames
        frames[1].line = ReportTemplate.line
        let samples = (0..<Int.random(in: 1...4, using: &random)).map { index in
            StallReport.Sample(
                atMilliseconds: 250.4 + 125 * Double(index), weightMilliseconds: ReportTemplate.weight(index), stack: 0,
                threadState: reason.kind == .cpu ? .running : .blocked, method: reason.kind == .cpu ? .ptrace : .read,
                isValid: true, isComplete: true, heldMicroseconds: 0, captureMicroseconds: 181.2
            )
        }
        var report = StallReport(
            schemaVersion: StallReport.currentSchemaVersion, id: ReportTemplate.id, kind: .stall, state: .ended,
            startedAt: ReportTemplate.startedAt, durationMilliseconds: ReportTemplate.milliseconds,
            thresholdMilliseconds: 250,
            process: .init(
                name: "notes", pid: ReportTemplate.pid, startedAt: ReportTemplate.processStartedAt,
                startTicks: ReportTemplate.startTicks, executable: "/opt/notes/bin/notes", architecture: "x86_64",
                operatingSystem: "Debian GNU/Linux 12 (bookworm)", kernel: "6.18.44", hostname: ReportTemplate.hostname,
                bootID: ReportTemplate.bootID),
            metadata: ["environment": "production", "version": ReportTemplate.version],
            loop: .init(
                label: loop, kind: .runLoop, mode: "kCFRunLoopDefaultMode", turn: ReportTemplate.turn, nesting: 0,
                thread: .init(id: ReportTemplate.pid, name: "notes")),
            callout: .timer, repeats: ReportTemplate.repeats,
            culprit: .init(function: culprit, image: "notes", file: file, line: ReportTemplate.line, share: 1),
            cause: .init(
                kind: reason.kind, summary: reason.summary, confidence: .likely,
                onCPUMilliseconds: ReportTemplate.onCPU, runQueueMilliseconds: ReportTemplate.runQueue,
                blockedMilliseconds: ReportTemplate.blocked, uncertaintyMilliseconds: 0.4, minorFaults: 31,
                majorFaults: 0,
                voluntarySwitches: 4, involuntarySwitches: 2, systemCall: reason.call,
                function: reason.call == nil ? nil : reason.function
            ),
            samples: samples, stacks: [Array(frames.indices)], frames: frames,
            images: Self.images.enumerated().map { index, name in
                .init(
                    name: name, path: index == 0 ? "/opt/notes/bin/notes" : "/usr/lib/\(name)",
                    buildID: hexadecimal(random.next(), width: 16) + hexadecimal(random.next(), width: 16),
                    baseAddress: "0x55d0c8a00000", isInApp: index == 0)
            },
            monitor: .init(
                version: StallWatchVersion.current, watchdogLateMilliseconds: 0.2, captureMethods: [.read, .ptrace],
                suppressed: .init())
        )
        report.fingerprint = Fingerprint(report).text
        return report
    }

    /// The shares of the time on a CPU and in the run queue.
    var shares: (onCPU: Double, runQueue: Double) { (reason.onCPU, reason.runQueue) }
}
