import Foundation
import StallReports
import TestSupport
import TextOutput

/// One run of the test host's stalls in a posture, and the judgement of each.
struct PostureRun: Sendable {
    struct Expected: Sendable {
        var name: String
        var function: String
        var cause: StallReport.CauseKind
        var lock: StallReport.LockKind?
        var owner: String?
    }

    enum Cell: Equatable, Sendable {
        case right
        /// The report lacks what the posture may cost.
        case weaker(String)
        /// The stall did not happen as intended, so nothing was judged.
        case notJudged(String)
        case wrong(String)

        var isNotJudged: Bool { if case .notJudged = self { true } else { false } }
    }

    static let expected: [Expected] = [
        Expected(name: "cpu", function: "compute(for:)", cause: .cpu),
        Expected(name: "sleep", function: "sleepInNanosleep(for:)", cause: .sleep),
        Expected(
            name: "lock", function: "waitForTheMutex(_:)", cause: .lock, lock: .pthreadMutex, owner: "lock-holder"),
        Expected(
            name: "semaphore", function: "waitForTheDispatchSemaphore(for:)", cause: .lock, lock: .dispatchSemaphore),
        Expected(name: "pipe", function: "readTheSilentPipe(_:)", cause: .io),
        Expected(name: "child", function: "waitForTheChildProcess(for:)", cause: .syscall),
        Expected(name: "epoll", function: "stalls_wait_in_epoll", cause: .io),
        Expected(name: "paging", function: "touchPages(ofFile:for:)", cause: .paging),
    ]

    /// The monitor's threshold and the duration of each stall, in milliseconds.
    private static let times = ["50", "200"]
    /// The time after which a run is killed, in seconds.
    private static let timeout: TimeInterval = 300
    /// The page faults that make a stall one of paging: fewer come from a file that the system keeps in memory.
    private static let leastFaults = 50
    /// The share of a stall without a CPU from which contention is a right cause: the largest of three parts has it.
    private static let contention = 1.0 / 3

    static let shortOfCPU = "short of CPU"

    let posture: Posture
    let hasEnded: Bool
    let output: String
    /// The number of calls that returned EINTR or early.
    private(set) var interrupted = 0
    /// The judgement of each stall, in the order of ``expected``.
    private(set) var cells: [Cell] = []
    private(set) var reports: [StallReport] = []
    /// What the monitor could do; `nil` if it did not start.
    let capabilities: Capabilities?
    /// What the monitor proves of itself at the end, if it is to.
    let proof: MonitorProof?
    /// What `stallwatch doctor` says in the same posture; `nil` if it failed.
    let diagnosis: Capabilities?

    /// `libraries` are the preloaded `forbid` and `hide`, and `file` is a large file that no other program uses.
    init(_ posture: Posture, libraries: [String], file: String) throws {
        self.posture = posture
        let directory = try TemporaryDirectory()
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: directory.path)
        func run(_ words: [String]) throws -> Command.Output {
            try Command(
                program: "/usr/bin/env",
                arguments: posture.command(in: directory.path, preloading: libraries) + words,
                environment: ["SWIFT_BACKTRACE": "enable=no", "PROOF_ATTEMPTS": posture.isProved ? "1" : "0"],
                timeout: Self.timeout
            ).run()
        }
        // Copies, because the build's directory may be closed to other users, as in root's home.
        func program(_ name: String) throws -> String {
            let built = try Command.product(name)
            return posture.isUnprivileged ? try directory.program(name, from: built) : built
        }
        let host = try program("stallwatch-test-host")
        let result = try run([host, "main-stalls", directory.path] + Self.times + [file])
        let diagnosed = try run([program("stallwatch"), "doctor", "--json"]).output
        diagnosis = (try? Tool.decode(Tool.Diagnosis.self, diagnosed))?.capabilities
        output = result.text
        hasEnded = result.reason == .exit && result.status == 0
        reports = try directory.reports()
        let lines = result.output.split(separator: "\n")
        capabilities = lines.first { $0.hasPrefix("C ") }.flatMap {
            Capabilities(jsonData: Array($0.dropFirst(2).utf8))
        }
        proof = lines.first { $0.hasPrefix("P ") }.flatMap {
            try? JSONDecoder().decode(MonitorProof.self, from: Data($0.dropFirst(2).utf8))
        }
        let stalls = lines.compactMap(Stall.init)
        interrupted = stalls.count { $0.isInterrupted }
        cells = Self.expected.map { expected in
            guard let stall = stalls.first(where: { $0.name == expected.name }) else { return .wrong("not run") }
            return judge(stall, expected)
        }
    }

    private struct Stall {
        var name: String
        /// Microseconds since 1970.
        var began: Int
        var microseconds: Int
        var cpuMicroseconds: Int
        var faults: Int
        var isInterrupted: Bool

        init?(_ line: Substring) {
            let words = line.split(separator: " ")
            let numbers = words.compactMap { Int($0) }
            guard words.count == 7, words[0] == "K", numbers.count == 4 else { return nil }
            name = String(words[1])
            (began, microseconds, cpuMicroseconds, faults) = (numbers[0], numbers[1], numbers[2], numbers[3])
            isInterrupted = words[6] == "true"
        }
    }

    /// The functions of the program that lead to each stall.
    private static let callers = ["MainStalls.stall(", "stallOnce("]

    private func judge(_ stall: Stall, _ expected: Expected) -> Cell {
        if expected.cause == .paging, stall.faults < Self.leastFaults {
            return .notJudged("\(stall.faults) page faults went to a disk")
        }
        // The report of the middle of the stall: its turn may begin earlier, and where it was uncertain, the report later.
        let middle = stall.began + stall.microseconds / 2
        let found = reports.first { report in
            let began = Int(report.startedAt.microsecondsSince1970)
            return began <= middle && middle < began + Int(report.durationMilliseconds * 1_000)
        }
        guard let report = found else { return .wrong("no report") }
        if report.missingSamplesReason != nil { return .notJudged("the watchdog came too late") }
        var lacks: [String] = []
        let mayLack = posture.mayLack[expected.name] ?? []
        if let function = report.culprit?.function {
            let isSeenLater = mayLack.contains(.function) && report.samples.contains { $0.reason?.isEmpty == false }
            if function != expected.function, isSeenLater, Self.callers.contains(where: function.contains) {
                // The thread had not come to its wait at the first look, and has no stack in it.
                return .notJudged("the thread was on its way")
            }
            if function != expected.function { return .wrong("blames \(function)") }
        } else if mayLack.contains(.function), report.samples.contains(where: { $0.reason?.isEmpty == false }) {
            // A thread that is met as it goes on has a stack, which does not show where it waited.
            lacks.append("no function")
        } else {
            return .wrong("blames no function: \(report.samples.compactMap(\.reason))")
        }
        guard let cause = report.cause else { return .wrong("no cause") }
        if cause.kind == .cpuContention, [.cpu, .paging].contains(expected.cause) {
            return wasShortOfCPU(stall, expected, cause) ? .notJudged(Self.shortOfCPU) : .wrong("cause cpuContention")
        }
        if cause.kind == .unknown, mayLack.contains(.cause) {
            lacks.append("no cause")
        } else if expected.cause == .paging, cause.kind == .cpu, stall.cpuMicroseconds * 2 > stall.microseconds {
            return .notJudged("its pages came too fast")
        } else if cause.kind != expected.cause {
            return .wrong("cause \(cause.kind.rawValue)")
        }
        let owner = cause.lock?.owners.first?.thread.name
        if cause.lock?.kind != expected.lock || owner != expected.owner {
            guard cause.lock == nil, mayLack.contains(.lock) else {
                return .wrong("lock \(cause.lock?.kind.rawValue ?? "none") of \(owner ?? "none")")
            }
            lacks.append("no lock")
        }
        return lacks.isEmpty ? .right : .weaker(lacks.joined(separator: ", "))
    }

    /// Whether other programs kept the thread from running, by the thread's own clock where that shows it.
    private func wasShortOfCPU(_ stall: Stall, _ expected: Expected, _ cause: StallReport.Cause) -> Bool {
        let waited =
            expected.cause == .cpu
            ? Double(stall.microseconds - stall.cpuMicroseconds) / 1_000 : cause.runQueueMilliseconds
        return waited >= Double(stall.microseconds) / 1_000 * Self.contention
    }
}

extension PostureRun {
    /// Where the claims of the monitor and of `stallwatch doctor` are wrong, in words; empty if all hold.
    var wrongClaims: [String] {
        guard let capabilities, let diagnosis else { return ["no claims: \(output)"] }
        let unseen = posture.missingFeatures.filter { capabilities[$0]?.state != .missing }
        let unexplained = capabilities.missing.filter { $0.loss == nil }
        let different = capabilities.features.filter { feature in
            guard let other = diagnosis[feature.name], ![feature.state, other.state].contains(.notTried) else {
                return false
            }
            return other.state != feature.state
        }
        return CapabilityClaims(capabilities: capabilities, reports: reports).contradictions
            + unseen.map { "\($0.rawValue) is not missing" }
            + unexplained.map { "\($0.name.rawValue) is missing without a loss" }
            + different.map { "doctor does not find \($0.name.rawValue) \($0.state.rawValue)" } + wrongProofs
    }

    /// Where the monitor proves more than its reports show.
    ///
    /// It may prove less: a busy machine disturbs it, and it wants a pipe's name, and files of /proc that the main loop's
    /// thread may have open from before. Where /proc is another namespace's, that a thread computes shows now and then only.
    private var wrongProofs: [String] {
        guard posture.isProved else { return [] }
        guard let proof else { return ["no proof: \(output)"] }
        return zip(Self.expected, cells).compactMap { expected, cell in
            guard case .weaker(let what) = cell,
                let trial = proof.trials.first(where: { $0.kind.rawValue == expected.name }), trial.faults.isEmpty,
                posture.name != Posture.foreignProc.name || trial.kind != .cpu
            else { return nil }
            return "\(expected.name) is proved, and its report has \(what)"
        } + proof.trials.flatMap(\.faults).filter { $0.contains("it is given as thread") }
    }

    static func matrix(_ runs: [PostureRun]) -> String {
        var table = TextTable((["posture"] + expected.map(\.name) + ["EINTR", "methods"]).map { .init($0) })
        for run in runs { table.add(run.words) }
        return table.text(for: Terminal()) + runs.flatMap(\.notes).map { $0 + "\n" }.joined()
    }

    private var words: [String] {
        let words = cells.map { cell in
            switch cell {
            case .right: "right"
            case .weaker: "weaker"
            case .notJudged: "-"
            case .wrong: "WRONG"
            }
        }
        let methods = reports.last?.monitor.captureMethods?.map(\.rawValue).joined(separator: " ") ?? "?"
        return [posture.name] + words + ["\(interrupted)", methods]
    }

    var notes: [String] {
        let proved = proof.map { ["\(posture.name), proof: \($0.summary)"] } ?? []
        return proved
            + zip(Self.expected, cells).compactMap { expected, cell in
                switch cell {
                case .right: nil
                case .weaker(let what), .notJudged(let what), .wrong(let what):
                    "\(posture.name), \(expected.name): \(what)"
                }
            }
    }
}

/// The claims of capabilities, compared with reports of the same process.
struct CapabilityClaims {
    let capabilities: Capabilities
    let reports: [StallReport]

    /// Every claim that the reports contradict, in words; empty if all hold.
    var contradictions: [String] {
        var found: [String] = []
        /// A feature that works has to be seen, and one that is missing must not be.
        func check(_ name: Capabilities.FeatureName, _ isSeen: Bool, _ what: String) {
            switch capabilities[name]?.state {
            case .works?: if !isSeen { found.append("\(name.rawValue) works, but no report has \(what)") }
            case .missing?: if isSeen { found.append("\(name.rawValue) is missing, but a report has \(what)") }
            default: break
            }
        }
        /// A feature that is missing must not be seen. One that works need not be.
        func checkAbsence(_ name: Capabilities.FeatureName, _ isSeen: Bool, _ what: String) {
            guard capabilities[name]?.state == .missing, isSeen else { return }
            found.append("\(name.rawValue) is missing, but a report has \(what)")
        }
        let samples = reports.flatMap(\.samples)
        let causes = reports.compactMap(\.cause)
        let permitted = reports.map { $0.monitor.captureMethods ?? [] }
        check(.read, samples.contains { $0.method == .read }, "a sample by read")
        check(.ptrace, samples.contains { $0.method == .ptrace }, "a sample by ptrace")
        check(.ptrace, permitted.allSatisfy { $0.contains(.ptrace) }, "ptrace in captureMethods")
        check(.signal, samples.contains { $0.method == .signal }, "a sample by signal")
        check(.waitChannel, causes.contains { $0.waitChannel != nil }, "a wait channel")
        check(.kernelStack, causes.contains { $0.kernelStack != nil }, "a kernel stack")
        check(.status, causes.contains { $0.voluntarySwitches > 0 }, "context switches")
        check(.pressure, causes.contains { $0.pressure != nil }, "pressure")
        check(.bootID, reports.allSatisfy { $0.process.bootID != nil }, "a boot id")
        checkAbsence(
            .schedstat, causes.contains { $0.kind == .sleep && $0.confidence == .certain }, "a certain cause of a wait")
        checkAbsence(
            .stat, causes.contains { $0.kernelShare != nil || $0.majorFaults > 0 }, "faults or the kernel's share")
        if capabilities[.read]?.state == .works {
            check(.syscall, causes.contains { $0.systemCall != nil }, "a system call")
        }
        let hasLines = reports.flatMap(\.frames).contains { $0.line != nil }
        checkAbsence(.libdw, hasLines, "lines")
        if capabilities[.libdw]?.state == .works { check(.debugInformation, hasLines, "lines") }
        let functions = Set(reports.flatMap(\.frames).compactMap(\.function))
        check(.symbols, PostureRun.expected.contains { functions.contains($0.function) }, "a function")
        return found
    }
}

extension Posture {
    /// Whether the monitor proves itself in this posture, and is judged by that.
    ///
    /// A proof may show more than a report that lacks something, name another thread than its own, or not be made,
    /// where a file, a part of the machine or memory is missing. What a monitor claims is not judged once it has given
    /// up its rights.
    fileprivate var isProved: Bool {
        guard afterStart != .dropUser else { return false }
        return !mayLack.isEmpty || machine != .whole || !limits.isEmpty || !missingFiles.isEmpty
    }
}
