import Glibc
import StallReports

/// A fleet whose programs stall: made-up reports in the order of time, the same ones for the same seed.
struct GeneratedFleet {
    struct Report {
        var fileName: String
        var json: [UInt8]
    }

    /// A process of a host, from its start until the next deployment.
    private struct Process {
        var hostname: String
        var bootID: String
        var pid: Int
        var startTicks: Int
        var startedAt: Timestamp
        var version: String
    }

    private static let microsecondsPerDay: Int64 = 86_400_000_000
    /// 2026-11-01T00:00:00Z, and the days from then on.
    private static let begin: Int64 = 1_793_491_200_000_000
    static let days: Int64 = 14
    private static let deployment: Int64 = 7
    static let versions = ["1.4.2", "1.5.0"]

    private var random: SplitMix64
    private let count: Int
    private let kinds: [GeneratedKind]
    private let sums: [Double]
    /// Per version, per host.
    private let processes: [[Process]]
    private var done = 0

    init(seed: UInt64, reports: Int, kinds kindCount: Int, hosts: Int) {
        var random = SplitMix64(seed: seed)
        kinds = (0..<kindCount).map { GeneratedKind(number: $0, using: &random) }
        var sum = 0.0
        sums = kinds.map { kind in
            sum += kind.weight
            return sum
        }
        let bootIDs = (0..<hosts).map { _ in
            ReportIdentifier.make(at: Timestamp(microsecondsSince1970: 0), random: random.pair())
        }
        processes = Self.versions.enumerated().map { index, version in
            (0..<hosts).map { host in
                let started =
                    Self.begin + Int64(index) * Self.deployment * Self.microsecondsPerDay
                    - Int64.random(in: 60_000_000...3_600_000_000, using: &random)
                return Process(
                    hostname: "web-\(host + 1)", bootID: bootIDs[host], pid: .random(in: 300...32_000, using: &random),
                    startTicks: .random(in: 10_000...9_000_000, using: &random),
                    startedAt: Timestamp(microsecondsSince1970: started), version: version
                )
            }
        }
        self.random = random
        count = reports
    }

    mutating func next() -> Report? {
        guard done < count else { return nil }
        let step = Self.days * Self.microsecondsPerDay / Int64(count)
        let time = Self.begin + Int64(done) * step + Int64.random(in: 0..<max(step, 1), using: &random)
        done += 1
        let day = (time - Self.begin) / Self.microsecondsPerDay
        let version = day < Self.deployment ? 0 : 1
        let kind = pickKind(day: day)
        guard let process = processes[version].randomElement(using: &random) else { return nil }
        let startedAt = Timestamp(microsecondsSince1970: time)
        let id = ReportIdentifier.make(at: startedAt, random: random.pair())
        let occurrence = ReportTemplate.Occurrence(
            id: id, startedAt: startedAt, milliseconds: kind.milliseconds(version: version, using: &random),
            repeats: Double.random(in: 0..<1, using: &random) < 0.1 ? .random(in: 1...8, using: &random) : 0,
            hostname: process.hostname, bootID: process.bootID, pid: process.pid, startTicks: process.startTicks,
            processStartedAt: process.startedAt, version: process.version,
            turn: .random(in: 100...5_000_000, using: &random), line: kind.line + version * 3
        )
        let stamp = startedAt.description.filter { $0 != "-" && $0 != ":" }
        return Report(fileName: "stall-\(stamp)-\(id.suffix(12)).json", json: kind.template.json(occurrence))
    }

    private mutating func pickKind(day: Int64) -> GeneratedKind {
        while true {
            let place = Double.random(in: 0..<(sums.last ?? 1), using: &random)
            let kind = kinds[sums.firstIndex { place < $0 } ?? 0]
            // The first kind is on every day, so this ends.
            if day >= (kind.isNew ? Self.days - 1 : 0) { return kind }
        }
    }
}

extension SplitMix64 {
    /// Two numbers, as an identifier needs.
    fileprivate mutating func pair() -> (UInt64, UInt64) { (next(), next()) }
}

/// A kind of made-up stalls: one path through a program, with its cause and how long such stalls last.
struct GeneratedKind {
    let weight: Double
    /// Whether it is found on the last day only.
    let isNew: Bool
    let line: Int
    let template: ReportTemplate
    /// The mean excess over the threshold in the first version, in milliseconds.
    private let mean: Double
    /// How many times longer stalls are in the second version.
    private let slowdown: Double

    private static let threshold = 250.0

    init(number: Int, using random: inout SplitMix64) {
        // Zipf's law: a few kinds have most of the stalls.
        weight = 1 / Double(number + 1)
        isNew = number > 0 && number % 17 == 16
        mean = .random(in: 40...900, using: &random)
        slowdown = number % 11 == 5 ? 2.5 : 1
        line = .random(in: 20...900, using: &random)
        let stack = GeneratedStack(number: number, using: &random)
        var report = stack.report(using: &random)
        report.victims = Self.victims(ofKind: number)
        template = ReportTemplate(report, shares: stack.shares)
    }

    /// What waited for stalls of every other kind: a timer, or nothing, as for the most frequent kind.
    private static func victims(ofKind number: Int) -> StallReport.Victims? {
        guard number.isMultiple(of: 2) else { return nil }
        let wait = Double(number / 2 * 7 % 11) * 100
        var victims = StallReport.Victims(totalWaitMilliseconds: wait)
        victims.timers = wait > 0 ? 1 : 0
        victims.longestTimerDelayMilliseconds = wait > 0 ? wait : nil
        return victims
    }

    func milliseconds(version: Int, using random: inout SplitMix64) -> Double {
        let place = Double.random(in: 0..<1, using: &random)
        let duration = Self.threshold - log(1 - place) * mean * (version == 0 ? 1 : slowdown)
        return (duration * 1_000).rounded() / 1_000
    }
}

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
                image: 2, offset: .init(.random(in: 0x1000...0xfffff, using: &random)),
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
            var frame = StallReport.Frame(
                image: image, offset: .init(.random(in: 0x1000...0xffffff, using: &random)),
                function: name, symbol: symbol, file: isInApp ? file : nil,
                line: isInApp ? .random(in: 10...900, using: &random) : nil, isInApp: isInApp, kind: .code)
            if isInApp { frame.column = 17 }
            frames.append(frame)
        }
        for function in [Self.callout, "__CFRunLoopDoTimers", "__CFRunLoopRun", "CFRunLoopRunSpecific"] {
            var frame = StallReport.Frame(
                image: 1, offset: .init(0x8a1c4), function: function, symbol: function, isInApp: false, kind: .code)
            frame.isRuntimeFrame = true
            frames.append(frame)
        }
        frames.append(
            StallReport.Frame(
                image: 0, offset: .init(0x2f3a0), function: "main", symbol: "main",
                file: "/src/notes/Sources/Notes/main.swift",
                line: 12, isInApp: true, kind: .code))
        self.frames = frames
    }

    /// A report in which all that differs between stalls of the kind has a placeholder.
    func report(using random: inout SplitMix64) -> StallReport {
        var frames = frames
        frames[1].line = ReportTemplate.line
        let samples = (0..<Int.random(in: 1...4, using: &random)).map { index in
            var sample = StallReport.Sample(
                atMilliseconds: 250.4 + 125 * Double(index), isValid: true, isComplete: true)
            sample.weightMilliseconds = ReportTemplate.weight(index)
            sample.stack = 0
            sample.threadState = reason.kind == .cpu ? .running : .blocked
            sample.method = reason.kind == .cpu ? .ptrace : .read
            sample.captureMicroseconds = 181.2
            return sample
        }
        var process = StallReport.ProcessDescription(
            name: "notes", pid: ReportTemplate.pid, executable: "/opt/notes/bin/notes", architecture: "x86_64",
            kernel: "6.18.44", hostname: ReportTemplate.hostname)
        process.startedAt = ReportTemplate.processStartedAt
        process.startTicks = ReportTemplate.startTicks
        process.operatingSystem = "Debian GNU/Linux 12 (bookworm)"
        process.bootID = ReportTemplate.bootID
        var cause = StallReport.Cause(
            kind: reason.kind, confidence: .likely, onCPUMilliseconds: ReportTemplate.onCPU,
            runQueueMilliseconds: ReportTemplate.runQueue, blockedMilliseconds: ReportTemplate.blocked,
            uncertaintyMilliseconds: 0.4)
        cause.summary = reason.summary
        (cause.minorFaults, cause.voluntarySwitches, cause.involuntarySwitches) = (31, 4, 2)
        cause.systemCall = reason.call
        if reason.call != nil { cause.function = reason.function }
        var report = StallReport(
            id: ReportTemplate.id, kind: .stall, state: .ended,
            startedAt: ReportTemplate.startedAt, durationMilliseconds: ReportTemplate.milliseconds,
            thresholdMilliseconds: 250, process: process,
            metadata: ["environment": "production", "version": ReportTemplate.version],
            loop: .init(
                label: loop, kind: .runLoop, turn: ReportTemplate.turn, nesting: 0,
                thread: .init(id: ReportTemplate.pid, name: "notes")),
            samples: samples, stacks: [Array(frames.indices)], frames: frames,
            images: Self.images.enumerated().map { index, name in
                .init(
                    name: name, path: index == 0 ? "/opt/notes/bin/notes" : "/usr/lib/\(name)",
                    buildID: hexadecimal(random.next(), width: 16) + hexadecimal(random.next(), width: 16),
                    baseAddress: .init(0x55d0_c8a0_0000), isInApp: index == 0)
            },
            monitor: .init(
                watchdogLateMilliseconds: 0.2, captureMethods: [.read, .ptrace],
                suppressed: .init())
        )
        report.loop.mode = "kCFRunLoopDefaultMode"
        report.callout = .timer
        report.repeats = ReportTemplate.repeats
        report.culprit = .init(function: culprit, image: "notes", file: file, line: ReportTemplate.line)
        report.culprit?.share = 1
        report.cause = cause
        report.fingerprint = Fingerprint(report).text
        return report
    }

    var shares: (onCPU: Double, runQueue: Double) { (reason.onCPU, reason.runQueue) }
}
