import Foundation
import Glibc
import LinuxSupport
import StallWatch
import Synchronization
import TextOutput

/// Something that happens to a loop, and the report that it must give.
struct Scenario: Sendable {
    /// Runs the scenario, and returns once the loop has no work left; the result is the measured duration of each
    /// injected stall.
    typealias Run = @Sendable (ScenarioContext) async throws -> [Duration]

    let name: String
    /// The event, in half a sentence.
    let summary: String
    /// The duration of the injected stall, as a multiple of the threshold.
    let stallFactor: Double
    /// The report's required contents; `nil` if there must be no report.
    var expected: ExpectedReport?
    /// The reason for which the monitor must suppress a stall; `nil` if that does not matter.
    var suppressed: SuppressionReason?
    /// The kind of cause that unexpected reports may have.
    var toleratedCause: String?
    let run: Run

    /// A scenario that must give a report; `run` returns the duration of the only stall.
    static func stalling(
        _ name: String, _ summary: String, times stallFactor: Double, _ expected: ExpectedReport,
        run: @escaping @Sendable (ScenarioContext) async throws -> Duration
    ) -> Scenario {
        stallingOften(name, summary, times: stallFactor, expected) { [try await run($0)] }
    }

    static func stallingOften(
        _ name: String, _ summary: String, times stallFactor: Double, _ expected: ExpectedReport, run: @escaping Run
    ) -> Scenario {
        Scenario(name: name, summary: summary, stallFactor: stallFactor, expected: expected, run: run)
    }

    /// A scenario that must give no report; reports of `toleratedCause` are allowed, because other threads do delay the
    /// loop.
    static func quiet(
        _ name: String, _ summary: String, suppressed: SuppressionReason? = nil,
        tolerating toleratedCause: String? = nil, run: @escaping @Sendable (ScenarioContext) async throws -> Void
    ) -> Scenario {
        Scenario(
            name: name, summary: summary, stallFactor: 0, expected: nil, suppressed: suppressed,
            toleratedCause: toleratedCause,
            run: { context in
                try await run(context)
                return []
            })
    }

    /// A scenario that must give no report unless a turn becomes a stall; `run` returns the duration of the longest one.
    static func short(
        _ name: String, _ summary: String, times stallFactor: Double,
        run: @escaping @Sendable (ScenarioContext) async throws -> Duration
    ) -> Scenario {
        Scenario(name: name, summary: summary, stallFactor: stallFactor, expected: nil, run: { [try await run($0)] })
    }
}

extension Scenario {
    static func list(_ scenarios: [Scenario]) -> String {
        let width = scenarios.map(\.name.count).max() ?? 0
        return scenarios.map { scenario in
            var expectation = scenario.expected == nil ? "no report" : "reported"
            if let function = scenario.expected?.function { expectation += " in " + function }
            return scenario.name.padded(to: width) + "  \(scenario.summary) (\(expectation))\n"
        }.joined()
    }
}

/// The scenario cannot run on this machine.
struct NotAvailable: Error {
    /// The missing thing, in half a sentence.
    let reason: String
}

/// A random number generator that repeats its numbers for the same seed (Steele, Lea and Flood 2014).
struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}

/// The surroundings of a scenario: the duration of its stall, the program's monitor, and its own monitors.
final class ScenarioContext: Sendable {
    let threshold: Duration
    let stall: Duration
    /// How long the scenario `under-load` lasts.
    let loadTime: Duration
    /// The program's own monitor, which watches the main run loop under the label `main`.
    let monitor: StallMonitor
    let mainLoop: LoopWatch
    let directory: String
    private let inbox: ReportInbox
    private let ownMonitors = Mutex<[StallMonitor]>([])
    private let host = Mutex<HostResult?>(nil)
    private let peer = Mutex<Int32?>(nil)
    private let timerWaits = Mutex<[(delay: Duration, part: Duration)]>([])

    init(
        threshold: Duration, stall: Duration, loadTime: Duration, monitor: StallMonitor, mainLoop: LoopWatch,
        directory: String, inbox: ReportInbox
    ) {
        self.threshold = threshold
        self.stall = stall
        self.loadTime = loadTime
        self.monitor = monitor
        self.mainLoop = mainLoop
        self.directory = directory
        self.inbox = inbox
    }

    /// Starts another monitor for this scenario; it stops once its reports have arrived.
    @discardableResult
    func watch(
        _ loops: WatchedLoop..., threshold loopThreshold: Duration? = nil,
        saturationThreshold: Duration? = .seconds(10), modalModes: Set<String> = [], pinnedThreshold: Duration? = nil
    ) async throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(
            threshold: threshold, outputs: [.all(in: directory)],
            detection: .init(saturationThreshold: saturationThreshold, pinnedThreshold: pinnedThreshold))
        // Several threads of a pool may be pinned in the same function.
        configuration.repeats.reportsEveryRepeat = pinnedThreshold != nil
        configuration.detection.modeStarvation?.modalModes = modalModes
        let monitor = try StallMonitor(configuration)
        for loop in loops { try monitor.watch(loop, threshold: loopThreshold) }
        try monitor.start()
        ownMonitors.withLock { $0.append(monitor) }
        await inbox.open(monitor.makeReports())
        return monitor
    }

    func expectPeer(_ process: Int32) { peer.withLock { $0 = process } }

    /// The process for which the thread waits; `nil` if the scenario has not said.
    var expectedPeer: Int32? { peer.withLock { $0 } }

    /// Keeps how late a timer was, and which part of that was within the stall.
    func addTimerWait(_ delay: Duration, within part: Duration) { timerWaits.withLock { $0.append((delay, part)) } }

    /// How late the latest of the scenario's timers was, in milliseconds; `nil` without one.
    var timerDelay: Double? { timerWaits.withLock { $0.map { $0.delay.milliseconds }.max() } }

    /// For how long the timers waited within the stall in all, in milliseconds; `nil` without one.
    var timerWait: Double? {
        timerWaits.withLock { $0.isEmpty ? nil : $0.reduce(0.0) { $0 + $1.part.milliseconds } }
    }

    /// Adds the reports and counts of a child process to this scenario's.
    func take(_ result: HostResult) {
        host.withLock { $0 = result }
    }
}

extension ReportOutput {
    /// A directory that keeps all reports: the results of a long soak name those of its first hour.
    static func all(in directory: String) -> Self {
        .directory(directory, quota: ReportQuota(reports: 1_000_000, bytes: 1 << 34))
    }
}

extension ScenarioContext {
    /// All monitors that reported to the inbox.
    var monitors: [StallMonitor] { [monitor] + ownMonitors.withLock { $0 } }

    var hostFiles: [String] { host.withLock { $0?.files ?? [] } }

    /// Returns how often the scenario's monitors, and the child's, have suppressed a stall for one of these reasons.
    func suppressed(_ reasons: [SuppressionReason]) -> Int {
        let counts = monitors.map(\.statistics.suppressed) + (host.withLock { $0?.suppressed }.map { [$0] } ?? [])
        return counts.reduce(0) { sum, counts in reasons.reduce(sum) { $0 + counts[$1] } }
    }

    /// Stops the scenario's own monitors.
    func close() {
        for monitor in ownMonitors.withLock({ $0 }) { monitor.stop() }
    }
}

/// Keeps the reports of several monitors until a caller takes them.
actor ReportInbox {
    private var waiting: [StallReport] = []
    private var readers: [Int: Task<Void, Never>] = [:]
    private var opened = 0

    /// Starts to read `reports`, up to the end of the stream.
    func open(_ reports: AsyncStream<StallReport>) {
        let number = opened
        opened += 1
        // A finished reader is removed, because a soak opens thousands.
        readers[number] = Task {
            for await report in reports { waiting.append(report) }
            readers[number] = nil
        }
    }

    /// Waits up to `limit` for `count` reports, then `settling` for unexpected ones; returns all since the last call.
    func reports(atLeast count: Int, within limit: Duration, settling: Duration) async -> [StallReport] {
        let end = ContinuousClock.now + limit
        while waiting.count < count, ContinuousClock.now < end { await pause(.milliseconds(5)) }
        await pause(settling)
        return takeAll()
    }

    /// Forgets the reports of stalls that began after `begin`.
    func forgetReports(since begin: Timestamp) {
        waiting.removeAll { $0.startedAt >= begin }
    }

    /// Waits for the end of all streams, after that of their monitors; returns all reports since the last call.
    func rest() async -> [StallReport] {
        for reader in readers.values { await reader.value }
        return takeAll()
    }

    private func takeAll() -> [StallReport] {
        defer { waiting.removeAll() }
        return waiting
    }
}
