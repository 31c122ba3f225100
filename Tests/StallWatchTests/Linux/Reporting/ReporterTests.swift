import Foundation
import Glibc
import InMemoryLogging
import Logging
import Synchronization
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

/// Runs the reporter on the test's own thread; records submitted before that wait in the mailbox; the time limit fails
/// a test whose stream does not end.
@Suite(.timeLimit(.minutes(10))) struct ReporterTests {
    private let scratch = TemporaryDirectory.ofTest()
    private let handler = InMemoryLogHandler()

    private func reporter(_ sinks: [ReportOutput] = []) throws -> Reporter {
        try reporter(sinks.map { $0.factory() })
    }

    private func reporter(_ sinks: [SinkFactory]) throws -> Reporter {
        var settings = Reporter.Settings.fixture()
        settings.reportsPerMinute = 10_000
        return try Reporter(settings: settings, sinks: sinks)
    }

    private var log: ReportOutput { .log(Logger(label: "test") { [handler] _ in handler }) }

    private var lines: [String] { handler.entries.map { "\($0.level) \($0.message)" } }

    private func run(_ reporter: Reporter) throws {
        try reporter.startSinks()
        reporter.close()
        reporter.run()
    }

    private func reports(_ stream: AsyncStream<StallReport>) async -> [StallReport] {
        await stream.reduce(into: []) { $0.append($1) }
    }

    @Test func `a stall of the monitor's own goes to who caused it, and nowhere else`() async throws {
        let (outputs, own) = (Collected<StallReport>(), Collected<StallReport>())
        let reporter = try reporter([.closure(outputs.add), .directory(scratch.path)])
        let stream = reporter.streams.stream()
        var record = StallRecord.fixture(function: 3, state: .ongoing)
        record.receiver = own.add
        reporter.submit(record)
        reporter.submit(record.after(milliseconds: 150))
        try run(reporter)
        #expect(own.all.map(\.state) == [.ended] && own.all.first?.durationMilliseconds == 150)
        #expect(own.all.first?.frames.map(\.symbol) == ["work3"])
        #expect(reporter.counts.current == MonitorStatistics() && reporter.counts.byLoop.isEmpty)
        #expect(outputs.all.isEmpty && scratch.names.filter(StallReport.isFileName).isEmpty)
        #expect(await reports(stream).isEmpty)
    }

    @Test func `turns that were over when the watchdog looked are reported and counted`() async throws {
        let reporter = try reporter()
        let stream = reporter.streams.stream()
        var record = StallRecord.fixture()
        (record.samples, record.missed, record.missedReason) = ([], 3, "the turn had ended")
        reporter.submit(record)
        reporter.submit(.fixture(function: 1))
        try run(reporter)
        let counts = reporter.counts.current
        #expect(counts.missed == 3 && counts.stalls == 4)
        #expect(reporter.counts.byLoop["main"]?.missed == 3 && reporter.counts.byLoop["main"]?.count == 4)
        let reports = await reports(stream)
        let missed = try #require(reports.first { $0.samples.isEmpty })
        let words = "main stalled for 400 ms\n  why  No sample: the turn had ended.\n  try  Set a lower"
        #expect(missed.summary.hasPrefix(words))
        #expect(missed.missingSamplesReason == "the turn had ended")
        #expect(missed.missingCulpritReason == missed.missingSamplesReason)
        #expect(reports.count == 2 && missed.cause == nil && missed.fault == nil)
    }

    private final class Inline: TaskExecutor {
        func enqueue(_ job: consuming ExecutorJob) { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    @Test func `a reader that keeps the thread which resumes it holds up no output`() async throws {
        let (outputs, executor, mayGoOn) = (Collected<String>(), Inline(), Semaphore())
        let reporter = try reporter([.closure { outputs.add($0.id) }])
        let stream = reporter.streams.stream()
        let readers = Collected<Task<Void, Never>>()
        // Up to its first wait the reader runs here.
        try WorkerThread(name: "reader") {
            readers.add(
                Task(executorPreference: executor) {
                    for await _ in stream { mayGoOn.wait() }
                })
        }.join()
        try reporter.startSinks()
        for function in 0..<2 { reporter.submit(.fixture(function: function)) }
        let thread = try WorkerThread(name: "reporter") { reporter.run() }
        #expect(eventually { outputs.all.count == 2 })
        for _ in 0..<2 { mayGoOn.post() }
        reporter.close()
        thread.join()
        for reader in readers.all { await reader.value }
        withExtendedLifetime(executor) {}
    }

    @Test func `operations beyond the limit are in the counts of a report`() async throws {
        let reporter = try reporter()
        let stream = reporter.streams.stream()
        var record = StallRecord.fixture()
        record.suppressed[.rateLimit] = 3
        reporter.counts.add { $0.suppressed[.rateLimit] = 2 }
        reporter.submit(record)
        try run(reporter)
        #expect(await reports(stream).map { $0.monitor.suppressed[.rateLimit] } == [5])
    }

    @Test func noticesAreFormattedOnlyForALog() throws {
        var wordings = 0
        func metadata() -> [String: String] {
            wordings += 1
            return ["threshold": "0.25 seconds"]
        }
        for (sinks, expected) in [([], 0), ([.closure { _ in }], 0), ([log], 1)] as [([ReportOutput], Int)] {
            let reporter = try reporter(sinks)
            reporter.logNotice("stall monitor started", metadata())
            try run(reporter)
            #expect(wordings == expected)
        }
        #expect(lines == ["info stall monitor started"])
    }

    @Test func `a file that cannot be flushed is named`() throws {
        let refusal = FileFlush.unavailable(errno: EPERM).refusal(of: "/reports")
        #expect(refusal == "/reports: fsync: Operation not permitted")
        let store: SinkFactory = { _, _ in
            SinkDescription(name: "store", events: [.ended, .recovered], isStore: true, unflushed: refusal) {
                ClosureSink { _ in }
            }
        }
        #expect(
            try reporter([store, log.factory()]).unflushed == [
                "/reports: fsync: Operation not permitted"
            ])
        #expect(try reporter([log]).unflushed == nil)
    }

    @Test func `missing capabilities are logged in one line`() throws {
        let reporter = try reporter([log])
        let environment = Capabilities.Environment(pid: 4700)
        reporter.logDegradation(Capabilities(environment, [.steal: .missing("no"), .read: .works()]))
        reporter.logDegradation(
            Capabilities(environment, [.ptrace: .missing("no"), .flush: .missing("/reports: fsync: no")])
        )
        reporter.submit(.fixture())
        try run(reporter)
        let lines = lines.filter { $0.contains("lack something") }
        #expect(lines.count == 1)
        let line = try #require(lines.first)
        #expect(line.hasPrefix("info stall reports lack something here: no capture by ptrace (no): "))
        #expect(line.contains("; no flush to the disk (/reports: fsync: no): a power failure may lose "))
        #expect(line.hasSuffix("; \"stallwatch doctor\" says what to set"))
    }

    @Test func theNewestStateOfAStallWins() async throws {
        let reporter = try reporter([.directory(scratch.path)])
        let stream = reporter.streams.stream()
        let first = StallRecord.fixture(function: 1, state: .ongoing)
        let second = StallRecord.fixture(function: 2)
        for record in [first, second, first.after(milliseconds: 900)] { reporter.submit(record) }
        try run(reporter)
        let reports = await reports(stream)
        #expect(reports.map(\.id) == [first.id, second.id], "in the order in which they began")
        #expect(reports.map(\.durationMilliseconds) == [900, 400])
        #expect(try scratch.reports().count == 2)
        #expect(reporter.counts.current.stalls == 2)
    }

    @Test func anOngoingStallIsOnDiskButNotInTheStream() async throws {
        let reporter = try reporter([.directory(scratch.path), log])
        let stream = reporter.streams.stream()
        reporter.submit(.fixture(state: .ongoing))
        try run(reporter)
        #expect(await reports(stream) == [])
        #expect(reporter.counts.current == MonitorStatistics())
        #expect(try scratch.reports().map(\.state) == [.ongoing])
        #expect(lines.isEmpty)
    }

    /// Symbolicating a process's first stall may take longer than its second stall lasts.
    @Test func aStallIsOnDiskBeforeAnEarlierOneIsNamed() throws {
        let second = Mutex<StallRecord?>(.fixture(function: 9, state: .ongoing))
        let submit = Mutex<(@Sendable (StallRecord) -> Void)?>(nil)
        let seen = Mutex<[[String]]>([])
        var settings = Reporter.Settings.fixture()
        settings.builder = { [scratch] in
            .stub(
                TableSymbolicator(symbols: ["app": [0x1000: "work", 0x1001: "work", 0x1009: "work"]]) {
                    // The second stall begins during the lookup of the first frame.
                    if let record = second.withLock({ $0.take() }) { return submit.withLock { $0?(record) } ?? () }
                    guard seen.withLock({ $0.isEmpty }) else { return }
                    _ = eventually { (try? scratch.reports().count) == 2 }
                    let culprits = (try? scratch.reports().map { $0.culprit?.function ?? "no name" }) ?? []
                    seen.withLock { $0.append(culprits) }
                })
        }
        let reporter = try Reporter(
            settings: settings, sinks: [ReportOutput.directory(scratch.path).factory()])
        submit.withLock { $0 = reporter.submit }
        var first = StallRecord.fixture(state: .ongoing)
        first.samples += StallRecord.fixture(function: 1).samples
        try reporter.startSinks()
        let thread = try WorkerThread(name: "test-reporter") { reporter.run() }
        reporter.submit(first)
        #expect(eventually { seen.withLock { !$0.isEmpty } })
        reporter.close()
        thread.join()
        #expect(seen.withLock { $0 } == [["no name", "no name"]])
        #expect(try scratch.reports().allSatisfy { $0.culprit?.function == "work" })
    }

    @Test func `the file of a stall that is over says so before it has names`() throws {
        let gate = LinuxSupport.Semaphore()
        var settings = Reporter.Settings.fixture()
        settings.builder = { .stub(TableSymbolicator(symbols: ["app": [0x1000: "work"]]) { gate.pass() }) }
        let states = Collected<StallState>()
        let recorder: SinkFactory = { _, _ in
            SinkDescription(name: "states", events: [.began, .updated, .ended]) {
                ClosureSink { report in states.add(report.state) }
            }
        }
        let stored = Collected<StallState>()
        settings.storeState = { stored.add($0.state) }
        let reporter = try Reporter(
            settings: settings, sinks: [ReportOutput.directory(scratch.path).factory(), recorder])
        try reporter.startSinks()
        let thread = try WorkerThread(name: "test-reporter") { reporter.run() }
        let stall = StallRecord.fixture(state: .ongoing)
        reporter.submit(stall)
        #expect(eventually { (try? scratch.reports().map(\.state)) == [.ongoing] })
        reporter.submit(stall.after(milliseconds: 900))
        #expect(eventually { (try? scratch.reports().map(\.state)) == [.ended] })
        let unnamed = try scratch.reports().first
        #expect(unnamed?.durationMilliseconds == 900)
        #expect(unnamed?.culprit == nil)
        #expect(stored.all.last == .ended)
        // Its report with names may be lost.
        #expect(eventually { !OpenReports.contains(stall.id) })
        gate.post()
        reporter.close()
        thread.join()
        let named = try scratch.reports().first
        #expect(named?.durationMilliseconds == 900)
        #expect(named?.culprit?.function == "work")
        // The names of the ongoing stall, which came after its end, were delivered to no sink.
        #expect(states.all.drop { $0 == .ongoing }.allSatisfy { $0 == .ended }, "\(states.all)")
        #expect(stored.all.drop { $0 == .ongoing }.allSatisfy { $0 == .ended }, "\(stored.all)")
    }

    @Test func `a stall whose report with names is lost is forgotten once nothing names it`() {
        let ends = UnnamedEnds()
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        ends.lose(report.id)
        #expect(ends.takeLost().isEmpty, "it was not seen")
        ends.add(report)
        ends.lose(report.id)
        let isForgottenEarly = ends.unlessKnown(report.id) {}
        #expect(ends.takeLost() == [report.id])
        let isForgotten = ends.unlessKnown(report.id) {}
        #expect(!isForgottenEarly && isForgotten)
        #expect(ends.due != .max, "its end is delivered")
    }

    @Test func `a full mailbox keeps the end of a stall that was seen`() throws {
        let scratch = try TemporaryDirectory(isInMemory: true)
        let gate = LinuxSupport.Semaphore()
        let isHeld = Atomic<Bool>(false)
        var settings = Reporter.Settings.fixture()
        settings.storeState = { _ in if !isHeld.exchange(true, ordering: .relaxed) { gate.wait() } }
        let reporter = try Reporter(settings: settings, sinks: [ReportOutput.directory(scratch.path).factory()])
        try reporter.startSinks()
        let thread = try WorkerThread(name: "test-reporter") { reporter.run() }
        let stall = StallRecord.fixture(state: .ongoing)
        reporter.submit(stall)
        #expect(eventually { isHeld.load(ordering: .relaxed) })
        reporter.submit(stall.after(milliseconds: 900))
        for _ in 0..<Reporter.capacity { reporter.submit(.fixture()) }
        #expect(reporter.counts.current.reportsLost == 1)
        gate.post()
        reporter.close()
        thread.join()
        let report = try scratch.reports().first { $0.id == stall.id }
        #expect(report?.state == .ended && report?.durationMilliseconds == 900)
    }

    @Test func otherSinksFindTheReportsFile() async throws {
        let reporter = try reporter([.directory(scratch.path)])
        let stream = reporter.streams.stream()
        try reporter.startSinks()
        let thread = try WorkerThread(name: "test-reporter") { reporter.run() }
        defer {
            reporter.close()
            thread.join()
        }
        for function in 0..<20 { reporter.submit(.fixture(function: function)) }
        var iterator = stream.makeAsyncIterator()
        for _ in 0..<20 {
            let report = try #require(await iterator.next())
            let file = try #require(AtomicFile.read(scratch.path + "/" + report.fileName, limit: 1 << 20))
            #expect(try StallReport(jsonData: file) == report)
        }
    }

    /// A dropped ongoing stall would be lost entirely; a finished one may have an earlier state on disk.
    @Test func aFullMailboxKeepsOngoingStalls() async throws {
        let reporter = try reporter()
        let lasting = StallRecord.fixture(function: 999, state: .ongoing)
        reporter.submit(lasting)
        for function in 0..<Reporter.capacity { reporter.submit(.fixture(function: function)) }
        let stream = reporter.streams.stream()
        reporter.submit(lasting.after(milliseconds: 900))
        try run(reporter)
        #expect(reporter.counts.current.reportsLost == 1)
        #expect(reporter.counts.current.stalls == Reporter.capacity + 1)
        #expect(reporter.counts.current.reportsDropped == Reporter.capacity - ReportStreams.capacity)
        #expect(await reports(stream).count == ReportStreams.capacity)
    }

    @Test func failedWritesAreCountedAndLoggedOnce() async throws {
        let path = scratch.path + "/reports"
        let reporter = try reporter([.directory(path), log])
        // A file replaces the directory, so that every write fails.
        try FileManager.default.removeItem(atPath: path)
        try AtomicFile.write([], to: path)
        let stream = reporter.streams.stream()
        for function in 0..<3 { reporter.submit(.fixture(function: function)) }
        let begun = monotonicNow()
        try run(reporter)
        let statistics = reporter.counts.current
        #expect((2...2 + Int((monotonicNow() - begun) / Retries.firstDelay)).contains(statistics.failedWrites))
        #expect(statistics.lastWriteError?.hasPrefix(path) == true)
        #expect(statistics.stalls == 3)
        #expect(statistics.reportsLost == 3)
        #expect(await reports(stream).count == 3)
        #expect(lines.filter { $0.contains("could not be delivered") }.count == 1)
    }
}

@Suite struct ReporterLoadTests {
    @Test func `a thousand stalls of 50 fingerprints stay within the quota`() throws {
        let scratch = try TemporaryDirectory()
        let quota = ReportQuota(reports: 100, bytes: 1 << 20)
        let (ended, told) = (Collected<Int>(), Collected<Int>())
        var settings = Reporter.Settings.fixture()
        settings.reportsPerMinute = 10_000
        let hooks = HookSink(event: { if case .ended = $0 { ended.add(1) } })
        let sinks: [ReportOutput] = [
            .directory(scratch.path, quota: quota), .closure { report in told.add(1 + report.repeats) },
        ]
        let statistics = try withReporter(sinks, hooks: hooks, settings: settings) { reporter in
            // Each stall makes two deliveries per sink. A queue holds more than 50 deliveries, so none may be lost,
            // even if a sink's thread gets no CPU.
            for batch in 1...40 {
                for number in 0..<25 {
                    let record = StallRecord.fixture(function: (batch * 25 + number) % 50, state: .ongoing)
                    reporter.submit(record)
                    reporter.submit(record.after(milliseconds: 300))
                }
                #expect(eventually { ended.all.count == batch * 25 })
                #expect(eventually { told.all.count + reporter.counts.current.suppressed[.repeated] == batch * 25 })
                #expect(scratch.names.count(where: StallReport.isFileName) <= quota.reports)
            }
        }
        #expect(statistics.stalls == 1_000)
        // Occurrences 1, 2, 4, 8 and 16 of 20 per fingerprint.
        #expect(statistics.suppressed[.repeated] == 1_000 - 50 * 5)
        #expect(statistics.suppressed[.rateLimit] == 0 && statistics.reportsLost == 0)
        #expect(told.all.reduce(0, +) == 50 * 16)
        #expect(try scratch.reports().reduce(0) { $0 + $1.jsonData().count } <= quota.bytes)
        #expect(scratch.names.count <= quota.reports && statistics.reportsRemoved >= 150)
    }
}
