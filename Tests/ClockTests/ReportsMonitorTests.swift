import CUnwindTestSupport
import Foundation
import Glibc
import StallReports
import StallWatch
import Synchronization
import Testing
import TestSupport

@testable import LinuxSupport

/// A complete monitor on a loop whose turns the test controls.
@Suite(.serialized) struct ReportsMonitorTests {
    private let scratch = TemporaryDirectory.ofTest(isInMemory: true)
    private let loop = ProbedLoop()
    private let began = Collected<StallReport>()
    private let ended = Collected<StallReport>()
    private let isSeen = Semaphore()

    private func monitor(_ change: (inout StallMonitor.Configuration) -> Void = { _ in }) throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(30), outputs: [.directory(scratch.path)], symbols: .init(lookup: .names))
        configuration.onEvent = { [began, ended, isSeen] event in
            switch event {
            case .began(let report):
                began.add(report)
                isSeen.post()
            case .ended(let report): ended.add(report)
            }
        }
        change(&configuration)
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(loop.probe))
        return monitor
    }

    /// Makes a turn that lasts until the monitor has seen that it is a stall.
    private func stall() {
        loop.turn { #expect(isSeen.wait(until: endOfPatience)) }
    }

    @Test func successiveMonitorsReportStalls() throws {
        for count in 1...3 {
            let monitor = try monitor()
            try monitor.start()
            stall()
            monitor.stop()
            #expect(scratch.reportNames.count == count)
        }
    }

    @Test func hooksAreCalledForRepeatedStalls() throws {
        let monitor = try monitor()
        try monitor.start()
        for number in 1...3 {
            stall()
            #expect(eventually { ended.all.count == number })
        }
        monitor.stop()
        #expect(began.all.map(\.id) == ended.all.map(\.id))
        #expect(began.all.map(\.state) == [.ongoing, .ongoing, .ongoing])
        #expect(ended.all.map(\.state) == [.ended, .ended, .ended])
        #expect(
            try scratch.reports().map(\.repeats) == [0, 0, 0], "the third is kept because it is the newest of its kind")
        #expect(directoryEntries(scratch.path)?.contains { $0.name.hasSuffix(".newest.json") } == false)
        #expect(monitor.statistics.stalls == 3)
        #expect(monitor.statistics.suppressed[.repeated] == 1)
    }

    /// The thread responds neither to ptrace nor to a signal, so its stack can only be read.
    @Test func aStallInUninterruptibleSleepIsReported() throws {
        // The names of the tests' file may take longer than a program would wait.
        let monitor = try monitor { $0.symbols.lookup.timeLimit = .seconds(4) }
        try monitor.start()
        #expect(monitor.settle([], until: endOfPatience))
        let begun = monotonicNow()
        loop.turn { cunwind_test_sleep_in_vfork(1000) }
        let taken = Double(monotonicNow() - begun) / 1_000_000
        // A stop waits for the names for a second only.
        #expect(monitor.settle([loop.probe.label], until: endOfPatience))
        monitor.stop()
        let report = try #require(try scratch.reports().first)
        #expect(report.state == .ended)
        #expect((1000...taken).contains(report.durationMilliseconds), "\(report.durationMilliseconds) of \(taken) ms")
        let samples = report.samples.filter { $0.isValid && $0.threadState != .running }
        #expect(samples.reduce(0) { $0 + ($1.timesSeen ?? 1) } > 1)
        for sample in samples {
            #expect(sample.threadState == .uninterruptible)
            #expect(sample.method == .read)
            #expect(sample.isComplete)
        }
        #expect(report.culprit?.function == "cunwind_test_sleep_in_vfork")
    }

    /// `EscalationTests` decide when.
    @Test func aStallEscalatesOnce() throws {
        let escalated = Collected<StallReport>()
        let monitor = try monitor { $0.escalation = .call(afterThresholds: 4, escalated.add) }
        try monitor.start()
        loop.turn { #expect(eventually { !escalated.all.isEmpty }) }
        monitor.stop()
        #expect(escalated.all.count == 1)
        #expect(try #require(escalated.all.first?.durationMilliseconds) >= 120)
        #expect(monitor.statistics.stalls == 1)
    }

    @Test func aSinkMayStopTheMonitor() throws {
        let box = Mutex<StallMonitor?>(nil)
        let stopped = Atomic<Bool>(false)
        let taken = Atomic<UInt64>(0)
        let other = Collected<StallReport>()
        let monitor = try monitor { configuration in
            configuration.outputs += [
                .closure { _ in
                    let begun = monotonicNow()
                    box.withLock { $0 }?.stop()
                    taken.store(monotonicNow() - begun, ordering: .relaxed)
                    stopped.store(true, ordering: .releasing)
                },
                .closure(other.add),
            ]
        }
        box.withLock { $0 = monitor }
        try monitor.start()
        stall()
        #expect(eventually { stopped.load(ordering: .acquiring) })
        // A stuck sink is waited for 900 ms and longer.
        #expect(taken.load(ordering: .relaxed) < 900_000_000, "stop() did not wait for the sink that called it")
        // A stop waits for each sink for a second only.
        #expect(eventually { !other.all.isEmpty } && other.all.count == 1)
        #expect(try scratch.reports().map(\.state) == [.ended])
        box.withLock { $0 = nil }
    }

    @Test func stopWaitsABoundedTimeForAStuckSink() throws {
        let never = DispatchSemaphore(value: 0)
        let monitor = try monitor { $0.outputs += [.closure { _ in never.wait() }] }
        try monitor.start()
        stall()
        #expect(eventually { scratch.reportNames.count == 1 })
        let begun = monotonicNow()
        monitor.stop()
        let taken = monotonicNow() - begun
        #expect((900_000_000...60_000_000_000).contains(taken), "\(taken) ns")
        never.signal()
    }

    /// Only a file output may hold it up for longer, for 5 s.
    @Test func `a redaction, an output and a client that never return delay stop() by a second`() throws {
        let never = Semaphore()
        defer { for _ in 0..<100 { never.post() } }
        let monitor = try monitor { configuration in
            configuration.privacy.redact = { _ in never.wait(until: endOfPatience) }
            configuration.outputs += [.closure { _ in never.wait(until: endOfPatience) }]
            configuration.control = .socket(directory: scratch.path)
        }
        try monitor.start()
        let socket = try #require(scratch.names.first(where: ControlRequest.isSocketName))
        guard case .connected(let client) = UnixSocket.connect(to: scratch.path(socket)) else {
            throw POSIXError(.ECONNREFUSED)
        }
        defer { close(client) }
        UnixSocket.send(Array(ControlRequest.stacks.line.utf8), to: client, until: endOfPatience)
        loop.turn { usleep(100_000) }
        let begun = monotonicNow()
        monitor.stop()
        let taken = monotonicNow() - begun
        #expect(taken < 3_000_000_000, "\(taken) ns")
        let report = try #require(try scratch.reports().first)
        // Of the second that a stop has, the redaction may leave too little for the turn's end.
        #expect(report.durationMilliseconds >= (report.state == .ended ? 100 : 30))
        #expect(report.frames.isEmpty && report.process.hostname == "", "what is not redacted is not shown")
    }

    @Test func stopAbandonsAnOngoingStall() throws {
        let monitor = try monitor()
        try monitor.start()
        loop.turn {
            #expect(isSeen.wait(until: endOfPatience))
            let stopping = Thread { monitor.stop() }
            stopping.start()
            while !stopping.isFinished { usleep(1_000) }
        }
        let report = try #require(try scratch.reports().first)
        #expect(report.state == .abandoned)
        #expect(report.durationMilliseconds >= 30)
        #expect(monitor.statistics.stalls == 1)
    }

    @Test(arguments: [false, true]) func `a task that is over at the stop has ended`(stopsItself: Bool) async throws {
        let monitor = try monitor { $0.detection.pinnedThreshold = .milliseconds(100) }
        try monitor.watch(.cooperativePool())
        try monitor.start()
        let task = Task.detached { [isSeen] in
            #expect(isSeen.wait(until: endOfPatience))
            if stopsItself { monitor.stop() }
        }
        await task.value
        // The task's thread may be this one.
        let stopping = Thread { monitor.stop() }
        stopping.start()
        while !stopping.isFinished { try await Task.sleep(for: .milliseconds(1)) }
        let pinned = try scratch.reports().filter { $0.kind == .pinned }
        #expect(pinned.map(\.state) == [.ended])
    }

    @Test func statisticsCountEveryTurn() throws {
        let path = scratch.path + "/statistics.json"
        let monitor = try monitor { $0.outputs.append(.statistics(path)) }
        try monitor.start()
        for _ in 0..<1_000 { loop.turn {} }
        loop.turn { usleep(100_000) }
        #expect(eventually { monitor.statistics.stalls >= 1 })
        monitor.stop()
        let statistics = monitor.statistics
        let probe = try #require(statistics.loops.first)
        #expect(statistics.loops.count == 1)
        #expect(probe.label == "probe")
        #expect(probe.turns == 1_001)
        #expect(probe.stalls == statistics.stalls)
        #expect(probe.latency.reduce(0) { $0 + $1.turns } == 1_001)
        let stall = Duration.milliseconds(100)...(.seconds(60))
        #expect(stall.contains(probe.busyTime))
        #expect(stall.contains(probe.stallTime))
        #expect(probe.lastStall != nil)
        #expect(try #require(probe.turnDuration(quantile: 0.5)) < .milliseconds(1))
        #expect(stall.contains(try #require(probe.turnDuration(quantile: 1))))
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(try JSONDecoder().decode(MonitorStatistics.self, from: data).loops.first?.turns == 1_001)
    }

    @Test func `no arguments, environment or memory are in a report`() throws {
        let secret = "hunter2-" + String(repeating: "x", count: 8)
        setenv("STALLWATCH_TEST_SECRET", secret, 1)
        defer { unsetenv("STALLWATCH_TEST_SECRET") }
        let monitor = try monitor()
        try monitor.start()
        withExtendedLifetime(secret) { stall() }
        monitor.stop()
        let text = String(decoding: try #require(try scratch.reports().first).jsonData(), as: UTF8.self)
        #expect(!text.contains("hunter2"))
        for argument in CommandLine.arguments.dropFirst() where argument.count > 6 { #expect(!text.contains(argument)) }
    }
}

/// What led to a stall, on real loops.
@Suite(.serialized) struct HistoryTests {
    private final class Received: Sendable {
        let reports = Mutex<[StallReport]>([])
    }

    /// Twelve turns of 40 ms in the second before a stall, while another loop is in a turn of its own.
    @Test func congestionBeforeAStallIsInItsReport() throws {
        let received = Received()
        let monitor = try StallMonitor(
            .init(
                threshold: .milliseconds(200),
                outputs: [.closure { report in received.reports.withLock { $0.append(report) } }],
                symbols: .init(lookup: .none)))
        let loop = ProbedLoop()
        let other = LoopProbe(label: "other")
        try monitor.watch(.probe(loop.probe))
        try monitor.watch(.probe(other))
        try monitor.start()
        defer { monitor.stop() }
        let worker = try WorkerThread(name: "other") {
            other.beginTurn()
            Thread.sleep(forTimeInterval: 0.15)
            other.endTurn()
        }
        for _ in 0..<12 {
            loop.turn { Thread.sleep(forTimeInterval: 0.04) }
            Thread.sleep(forTimeInterval: 0.03)
        }
        worker.join()
        loop.turn { Thread.sleep(forTimeInterval: 0.3) }
        // A turn of 40 ms may become a stall on a busy machine.
        func isLast(_ report: StallReport) -> Bool {
            report.loop.label == "probe" && report.loop.turn == 13 && report.durationMilliseconds >= 300
        }
        let isThere = eventually {
            received.reports.withLock { $0.contains(where: isLast) }
        }
        #expect(isThere)
        let report = try #require(received.reports.withLock { $0.last(where: isLast) })
        let history = try #require(report.history)
        #expect(history.loops.map(\.label) == ["probe", "other"])
        let turns = try #require(history.loops.first?.turns)
        #expect(turns.count == 12)
        #expect(turns.allSatisfy { $0.durationMilliseconds >= 40 && $0.isOngoing == nil })
        #expect(turns.dropFirst().allSatisfy { $0.waitedMilliseconds >= 30 })
        #expect(turns.allSatisfy { $0.atMilliseconds < 0 })
        #expect(history.loops.last?.turns.map { $0.durationMilliseconds >= 150 } == [true])
    }
}

/// What ``StallMonitor/settle(_:until:)`` promises to code that needs each report at once.
@Suite(.serialized) struct SettlingTests {
    private final class Received: Sendable {
        let labels = Mutex<[String]>([])
        let began = Semaphore()
    }

    private let received = Received()
    private let probe = LoopProbe(label: "settled")

    private func monitor() throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(20),
            outputs: [.closure { [received] report in received.labels.withLock { $0.append(report.loop.label) } }])
        configuration.repeats.reportsEveryRepeat = true
        configuration.symbols.lookup = .none
        configuration.onEvent = { [received] in if case .began = $0 { received.began.post() } }
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(probe))
        try monitor.start()
        return monitor
    }

    private func stall() throws {
        probe.beginTurn()
        try #require(received.began.wait(until: endOfPatience))
    }

    private func settle(_ monitor: StallMonitor, within nanoseconds: UInt64 = patience) -> Bool {
        monitor.settle(["settled"], until: monotonicNow() + nanoseconds)
    }

    @Test func `the sinks have every stall that is over`() throws {
        let monitor = try monitor()
        defer { monitor.stop() }
        #expect(settle(monitor))
        for count in 1...5 {
            try stall()
            probe.endTurn()
            #expect(settle(monitor))
            #expect(received.labels.withLock { $0.count } == count)
        }
    }

    @Test func `a stall that goes on is waited for until the deadline`() throws {
        let monitor = try monitor()
        defer { monitor.stop() }
        try stall()
        #expect(!settle(monitor, within: 50_000_000))
        #expect(received.labels.withLock { $0.isEmpty })
        probe.endTurn()
        #expect(settle(monitor))
        #expect(received.labels.withLock { $0 } == ["settled"])
    }
}

/// A loop whose turns the test makes itself.
struct ProbedLoop {
    let probe = LoopProbe(label: "probe")

    func turn(_ work: () -> Void) {
        probe.beginTurn()
        work()
        probe.endTurn()
    }
}
