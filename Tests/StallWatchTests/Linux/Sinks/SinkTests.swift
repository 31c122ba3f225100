import Glibc
import InMemoryLogging
import Logging
import Synchronization
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StallReports
@testable import StallSymbols
@testable import StallWatch

/// A faulty sink harms neither the monitor nor another sink.
@Suite struct SinkTests {
    private let scratch = TemporaryDirectory.ofTest()

    private struct Refused: Error {}

    /// Settings with a rate limit that suppresses no report, and a monitor's own limits on waits.
    private var settings: Reporter.Settings {
        var settings = Reporter.Settings.fixture()
        (settings.reportsPerMinute, settings.patience) = (10_000, 0)
        return settings
    }

    /// A queue may be watched for each import.
    @Test func `a watch has no stalls of an earlier one with its label`() {
        let counts = ReportCounts()
        counts.add(stallOf: 3_000, on: "imports")
        let entry = LoopEntry(label: "imports", identity: nil, monitors: [], before: counts.byLoop["imports"])
        #expect(entry.stalls(in: counts.byLoop) == nil)
        counts.add(stallOf: 700, on: "imports", missed: 2)
        let stalls = entry.stalls(in: counts.byLoop)
        #expect(stalls?.count == 2 && stalls?.missed == 2 && stalls?.nanoseconds == 700)
        let first = LoopEntry(label: "imports", identity: nil, monitors: [])
        #expect(first.stalls(in: counts.byLoop) == counts.byLoop["imports"])
    }

    @Test func everySinkGetsEachReportOnce() throws {
        let first = Collected<StallReport>()
        let second = Collected<StallReport>()
        let statistics = try withReporter([
            .directory(scratch.path), .closure(first.add), .closure(second.add),
            .ndjson(path: scratch.path + "/all.ndjson"),
        ]) { reporter in
            for function in 0..<20 {
                let record = StallRecord.fixture(function: function, state: .ongoing)
                reporter.submit(record)
                reporter.submit(record.after(milliseconds: 500))
            }
        }
        #expect(statistics.stalls == 20)
        #expect(statistics.reportsLost == 0)
        #expect(first.all.count == 20)
        #expect(first.all == second.all)
        #expect(try scratch.reports() == first.all.sorted { $0.startedAt < $1.startedAt })
        let lines = try #require(AtomicFile.read(scratch.path + "/all.ndjson", limit: 1 << 24)).split(
            separator: UInt8(ascii: "\n"))
        #expect(try lines.map { try StallReport(jsonData: Array($0)) } == first.all)
    }

    /// A disk that is nearly full: one report does not fit, and the others do.
    private final class SmallStore: Sink {
        private let box: Collected<StallReport>
        private let refused: String

        init(_ box: Collected<StallReport>, refusing refused: String) { (self.box, self.refused) = (box, refused) }

        func receive(_ delivery: Delivery) throws(StallWatchError) {
            guard let report = delivery.report else { return }
            guard report.id != refused else { throw StallWatchError(.unwritableReports, "it does not fit") }
            box.add(report)
        }
    }

    @Test func `a report that does not fit holds back no other`() throws {
        let box = Collected<StallReport>()
        let counts = ReportCounts()
        let reports = (0..<3).map { _ in Reporter.Settings.fixture().builder().report(of: .fixture()) }
        let description = SinkDescription(name: "test-store", events: [.ended], isStore: true) { [reports] in
            SmallStore(box, refusing: reports[0].id)
        }
        let worker = SinkWorker(description, counts: counts) { _ in }
        // The first one fails, so the others wait behind it for a second, or for the end.
        for report in reports { worker.submit(.init(ended: report)) }
        try worker.start()
        worker.close()
        worker.join(until: endOfPatience)
        #expect(Set(box.all.map(\.id)) == Set(reports.dropFirst().map(\.id)))
        #expect(counts.current.reportsLost == 1)
    }

    @Test func `a sink that does not return, or cannot write, is found`() throws {
        let gate = Semaphore()
        defer { gate.post() }
        func sink(_ name: String, _ wait: @escaping @Sendable () -> Void, fails: Bool = false) -> SinkFactory {
            { _, _ in
                SinkDescription(name: name, events: [.ended]) { WaitingSink(wait: wait, fails: fails) }
            }
        }
        let set = try SinkSet(
            [sink("stuck") { gate.wait(until: endOfPatience) }, sink("free") {}, sink("full", {}, fails: true)],
            counts: ReportCounts(), notices: SinkEventRelay(), extra: 0)
        try set.start()
        #expect(set.faults(stores: endOfPatience, others: endOfPatience) == ["no room"])
        set.submit(.init(ended: Reporter.Settings.fixture().builder().report(of: .fixture())))
        let faults = ["an output does not answer (thread stuck)", "no room"]
        let soon = 20_000_000 as UInt64
        #expect(eventually { set.faults(stores: 0, others: monotonicNow() + soon).sorted() == faults })
        gate.post()
        set.finish(stores: endOfPatience, others: endOfPatience)
        // A sink that has ended does not keep its caller waiting.
        #expect(set.faults(stores: endOfPatience, others: endOfPatience) == [])
    }

    private final class WaitingSink: Sink {
        private let wait: @Sendable () -> Void
        private let fails: Bool

        init(wait: @escaping @Sendable () -> Void, fails: Bool) { (self.wait, self.fails) = (wait, fails) }

        func receive(_ delivery: Delivery) throws(StallWatchError) { wait() }

        func checkReadiness() throws(StallWatchError) {
            if fails { throw StallWatchError(.unwritableReports, "no room") }
        }
    }

    @Test func aThrowingSinkIsCountedAndNotRetried() throws {
        let calls = Atomic<Int>(0)
        let box = Collected<StallReport>()
        let statistics = try withReporter([
            .closure { _ in
                calls.add(1, ordering: .relaxed)
                throw Refused()
            },
            .closure(box.add),
        ]) { reporter in
            for function in 0..<3 { reporter.submit(.fixture(function: function)) }
        }
        #expect(calls.load(ordering: .relaxed) == 3)
        #expect(statistics.failedWrites == 3)
        #expect(statistics.lastWriteError?.hasPrefix("the app's sink threw an error") == true)
        #expect(box.all.count == 3)
    }

    @Test func aStuckSinkDelaysNoOtherSink() throws {
        // A disk may take longer than the limit.
        let scratch = try TemporaryDirectory(isInMemory: true)
        let never = LinuxSupport.Semaphore()
        defer { never.post() }
        let box = Collected<StallReport>()
        let begun = monotonicNow()
        let statistics = try withReporter(
            [.closure { _ in never.wait() }, .closure(box.add), .directory(scratch.path)], settings: settings
        ) { reporter in
            for function in 0..<30 {
                reporter.submit(.fixture(function: function))
                reporter.submit(.fixture(function: function))
            }
            #expect(eventually { box.all.count == 60 && scratch.reportNames.count == 60 })
            // One report is in the sink, and the queue is full of others.
            #expect(reporter.counts.current.reportsLost == 0)
        }
        // Those of the stuck one, which the stop does not wait for.
        #expect(statistics.reportsLost == 60)
        #expect(try scratch.reports().count == 60)
        // Waiting for the stuck one each time would take 60 times the limit.
        #expect(monotonicNow() - begun < 55 * SinkSet.otherTimeLimit)
    }

    @Test func theQueueOfASlowSinkIsBounded() throws {
        let gate = LinuxSupport.Semaphore()
        let taken = Atomic<Bool>(false)
        let counts = ReportCounts()
        let got = Atomic<Int>(0)
        let output = ReportOutput.closure { _ in
            if !taken.exchange(true, ordering: .relaxed) { gate.wait() }
            got.add(1, ordering: .relaxed)
        }
        let description = try #require(try output.factory()(counts) { _ in })
        let worker = SinkWorker(description, counts: counts) { _ in }
        try worker.start()
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        worker.submit(.init(ended: report))
        #expect(eventually { taken.load(ordering: .relaxed) })
        for _ in 0..<(SinkWorker.capacity + 10) { worker.submit(.init(ended: report)) }
        #expect(counts.current.reportsLost == 10)
        gate.post()
        worker.close()
        worker.join(until: endOfPatience)
        #expect(got.load(ordering: .relaxed) == SinkWorker.capacity + 1)
    }

    /// Waits before each delivery, of which it counts those that have come.
    private final class GatedStore: Sink {
        private let store: any Sink
        private let gate: LinuxSupport.Semaphore
        private let arrivals: Collected<String?>

        init(_ store: any Sink, _ gate: LinuxSupport.Semaphore, _ arrivals: Collected<String?>) {
            (self.store, self.gate, self.arrivals) = (store, gate, arrivals)
        }

        func receive(_ delivery: Delivery) throws(StallWatchError) {
            arrivals.add(delivery.id)
            gate.wait()
            try store.receive(delivery)
        }

        func finish() -> [StallWatchError] { store.finish() }
    }

    @Test func `a report whose newer state follows is not lost`() throws {
        let counts = ReportCounts()
        let description = SinkDescription(name: "test-app", events: [.began, .updated, .ended]) {
            ClosureSink { _ in }
        }
        let worker = SinkWorker(description, counts: counts) { _ in }
        let builder = Reporter.Settings.fixture().builder()
        for _ in 0..<30 {
            let stall = StallRecord.fixture(state: .ongoing)
            worker.submit(.init(.began, builder.report(of: stall)))
            worker.submit(.init(.updated, builder.report(of: stall)))
            worker.submit(.init(ended: builder.report(of: stall.after(milliseconds: 900))))
        }
        // All of eight stalls, and two states of the ninth.
        try #require(90 - SinkWorker.capacity == 26)
        #expect(counts.current.reportsLost == 8)
    }

    @Test func `what a store has not written when a stop gives it up is lost once`() throws {
        let (gate, arrivals, counts) = (LinuxSupport.Semaphore(), Collected<String?>(), ReportCounts())
        let box = Collected<StallReport>()
        let reports = (0..<3).map { _ in Reporter.Settings.fixture().builder().report(of: .fixture()) }
        let description = SinkDescription(name: "test-store", events: [.ended], isStore: true) { [reports] in
            GatedStore(SmallStore(box, refusing: reports[0].id), gate, arrivals)
        }
        let worker = SinkWorker(description, counts: counts) { _ in }
        try worker.start()
        for report in reports { worker.submit(.init(ended: report)) }
        #expect(eventually { arrivals.all.count == 1 })
        worker.close()
        worker.join(until: 0)
        #expect(counts.current.reportsLost == 3)
        worker.submit(.init(ended: reports[0]))
        #expect(counts.current.reportsLost == 3)
        // The first one fails, and all are tried again.
        for _ in 0..<16 { gate.post() }
        #expect(eventually { box.all.count == 2 })
        #expect(counts.current.reportsLost == 3)
    }

    @Test func `a sink that stops the monitor loses nothing for that`() throws {
        let (counts, box) = (ReportCounts(), Collected<StallReport>())
        let (gate, begins) = (LinuxSupport.Semaphore(), LinuxSupport.Semaphore())
        let own = Collected<SinkWorker>()
        let description = SinkDescription(name: "test-app", events: [.ended]) {
            ClosureSink { report in
                own.all.first?.abandonIfCurrent()
                begins.post()
                gate.wait()
                box.add(report)
            }
        }
        let worker = SinkWorker(description, counts: counts) { _ in }
        own.add(worker)
        try worker.start()
        worker.submit(.init(ended: Reporter.Settings.fixture().builder().report(of: .fixture())))
        begins.wait(until: endOfPatience)
        worker.close()
        worker.join(until: 0)
        gate.post()
        #expect(eventually { box.all.count == 1 })
        #expect(counts.current.reportsLost == 0)
    }

    @Test func `a stop ends the wait for a store that hangs`() throws {
        let (gate, arrivals, box) = (LinuxSupport.Semaphore(), Collected<String?>(), Collected<StallReport>())
        defer { gate.post() }
        let store: SinkFactory = { _, _ in
            SinkDescription(name: "test-store", events: [.ended], isStore: true) {
                GatedStore(ClosureSink { _ in }, gate, arrivals)
            }
        }
        // The store has more time than the other sink has here.
        let set = try SinkSet(
            [store, ReportOutput.closure(box.add).factory()], counts: ReportCounts(), notices: SinkEventRelay(),
            extra: 2 * TestSupport.patience)
        try set.start()
        let (limit, report) = (StopLimit(), Reporter.Settings.fixture().builder().report(of: .fixture()))
        let thread = try WorkerThread(name: "test-submit") {
            var reached: [SinkWorker.Barrier] = []
            set.submitFinal(.init(ended: report), reached: &reached) { limit.ofNames }
        }
        #expect(eventually { arrivals.all.count == 1 })
        #expect(box.all.isEmpty)
        limit.begin()
        #expect(limit.ofNames < limit.ofReports, "then its queue is closed")
        #expect(limit.ofWrites < limit.ofStores, "what is lost is counted before the stop returns")
        #expect(eventually { box.all == [report] })
        gate.post()
        thread.join()
        set.finish(stores: endOfPatience, others: endOfPatience)
    }

    @Test func `a stall whose final report is lost ends in its file`() throws {
        let scratch = try TemporaryDirectory(isInMemory: true)
        let (gate, arrivals, counts) = (LinuxSupport.Semaphore(), Collected<String?>(), ReportCounts())
        let store = try #require(try ReportOutput.directory(scratch.path).factory()(counts) { _ in })
        let description = SinkDescription(name: "test-store", events: store.events, isStore: true) {
            GatedStore(store.make(), gate, arrivals)
        }
        let worker = SinkWorker(description, counts: counts) { _ in }
        try worker.start()
        let builder = Reporter.Settings.fixture().builder()
        let stall = StallRecord.fixture(function: 1, state: .ongoing)
        func submitOther() { worker.submit(.init(ended: builder.report(of: .fixture(function: 2)))) }
        worker.submit(.init(.updated, builder.report(of: stall)))
        submitOther()
        gate.post()
        // Until the other one keeps the store.
        #expect(eventually { arrivals.all.count == 2 })
        worker.submit(.init(ended: builder.report(of: stall.after(milliseconds: 900))))
        for _ in 0..<SinkWorker.capacity { submitOther() }
        #expect(counts.current.reportsLost == 1)
        for _ in 0..<SinkWorker.capacity + 2 { gate.post() }
        worker.close()
        worker.join(until: endOfPatience)
        let report = try #require(try scratch.reports().first { $0.id == stall.id })
        #expect(report.state == .ended && report.durationMilliseconds == 900)
        #expect(!report.samples.isEmpty, "what was known while it lasted")
        #expect(!OpenReports.contains(stall.id))
    }

    @Test func `the log says what is serious, why, and where the report is`() throws {
        let handler = InMemoryLogHandler()
        let sink = LogSink(Logger(label: "test") { _ in handler }, directory: "/stalls")
        var report = try StallReport.literal()
        report.culprit = StallReport.Culprit(function: "save()", file: "/src/Store.swift", line: 8)
        report.cause = .fixture(kind: .deadlock, summary: "Deadlock.")
        report.fingerprint = "9f2c41d07a3be815"
        report.state = .ongoing
        // Once while it lasts, though each new sample brings an update.
        for _ in 0..<3 { sink.receive(.init(.updated, report)) }
        sink.receive(.init(.escalated, report))
        report.state = .ended
        report.cause?.kind = .sleep
        sink.receive(.init(ended: report))
        report.state = .abandoned
        sink.receive(.init(.recovered, report))
        let entries = handler.entries
        #expect(entries.map(\.level) == [.error, .error, .warning, .error])
        let first = entries.first?.message.description ?? ""
        #expect(first.contains(" at Store.swift:8 (timer)\n  why  Deadlock.\n  try  "))
        #expect(entries.dropFirst().first?.message.description.hasPrefix("overdue: ") == true)
        let metadata = try #require(entries.first?.metadata)
        #expect(
            metadata == [
                "kind": "stall", "state": "ongoing", "loop": "main", "durationMilliseconds": "812.4",
                "thresholdMilliseconds": "250.0", "repeats": "0", "callout": "timer", "culprit": "save()",
                "file": "/src/Store.swift:8",
                "cause": "deadlock", "fingerprint": "9f2c41d07a3be815", "report": "\(report.id)",
                "path": "/stalls/\(report.fileName)",
            ])
    }

    @Test func `no name in a line of the log is obeyed by a terminal`() throws {
        let handler = InMemoryLogHandler()
        let sink = LogSink(Logger(label: "test") { _ in handler }, directory: "/sta\nlls")
        var report = try StallReport.literal()
        report.loop.label = "main\u{1b}[2J"
        report.culprit = StallReport.Culprit(function: "save()\r", file: "/src/\u{202e}Store.swift", line: 8)
        report.cause = .fixture(kind: .io, summary: "Blocked in read(/tmp/a\nERROR: b).")
        sink.receive(.init(ended: report))
        sink.receive(.init(notice: "a\nb", ["reason": "c\u{9b}d"]))
        for entry in handler.entries {
            for text in [entry.message.description] + entry.metadata.values.map({ "\($0)" }) {
                // The lines that begin with "why" and "try" are the monitor's own.
                let line = text.replacing("\n  why  ", with: "").replacing("\n  try  ", with: "")
                #expect(line == line.withoutControls)
            }
        }
        #expect(handler.entries.count == 2)
        #expect(report.summary.contains("\n  why  Blocked in read(/tmp/a\u{fffd}ERROR: b).\n"))
        report.cause?.systemCall = StallReport.SystemCall(number: 0, name: "read", target: "/tmp/a\nb\u{efe9}")
        #expect(report.cause?.sentence.contains("/tmp/a\u{fffd}b\u{fffd}") == true)
    }

    @Test func `the newest repeat keeps its file, under another name until the monitor stops`() throws {
        _ = try withReporter([.directory(scratch.path)]) { reporter in
            for _ in 0..<2 { reporter.submit(.fixture(function: 1)) }
            #expect(eventually { scratch.shownNames.count == 2 })
            let third = StallRecord.fixture(function: 1, state: .ongoing)
            reporter.submit(third)
            #expect(eventually { scratch.shownNames.count == 3 })
            reporter.submit(third.after(milliseconds: 600))
            #expect(eventually { scratch.names.count { $0.hasSuffix(StallReport.newestSuffix) } == 1 })
            #expect(eventually { scratch.shownNames.count == 3 })
        }
        #expect(try scratch.reports().map(\.state) == [.ended, .ended, .ended])
        #expect(!scratch.names.contains { $0.hasSuffix(StallReport.newestSuffix) })
    }

    @Test func `a file's directory may get another name`() throws {
        let file = NDJSONFile(FixedFile(scratch.path("a/stalls.ndjson")), maximumBytes: 1, keep: 1)
        try file.check()
        try #require(rename(scratch.path("a"), scratch.path("b")) == 0)
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        for _ in 0..<2 { try file.receive(.init(ended: report)) }
        #expect(
            Set((directoryEntries(scratch.path("b")) ?? []).map(\.name)).isSuperset(of: [
                "stalls.ndjson.1", "stalls.ndjson",
            ]))
        #expect(directoryEntries(scratch.path("a")) == nil)
    }

    @Test func `what cannot be written is found without a report`() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let stream = try NDJSONStream.description(of: ends[1]).make()
        close(ends[1])
        try stream.checkReadiness()
        // A child of another test may have the reading end, too, for a moment.
        close(ends[0])
        #expect(
            eventually {
                do throws(StallWatchError) { try stream.checkReadiness() } catch { return error.errno == EPIPE }
                return false
            })
        let path = scratch.path("a/stalls.ndjson")
        let file = NDJSONFile(FixedFile(path), maximumBytes: 1, keep: 0)
        try file.checkReadiness()
        #expect(FileStatus(path: path)?.isRegular == true, "as for the next report")
        try #require(unlink(path) == 0 && mkdir(path, 0o700) == 0)
        #expect(throws: StallWatchError.self) { try file.checkReadiness() }
    }

    @Test func `what cannot be written is refused in words`() throws {
        let fifo = scratch.path("fifo")
        try #require(mkfifo(fifo, 0o600) == 0)
        let link = scratch.path("link")
        try #require(symlink(scratch.path("file"), link) == 0)
        let input = open("/dev/null", O_RDONLY)
        defer { close(input) }
        func refusal(_ sink: ReportOutput) -> String {
            do throws(StallWatchError) {
                _ = try sink.factory()(ReportCounts()) { _ in }
                return "none"
            } catch {
                return error.description
            }
        }
        #expect(refusal(.ndjson(path: fifo)).contains("fifo is not a regular file: name one, or open it and use"))
        #expect(refusal(.ndjson(path: "/dev/null")).contains("not a regular file"))
        #expect(refusal(.ndjson(path: link)).contains("is a symbolic link: name the file itself"))
        #expect(refusal(.ndjson(descriptor: input)).contains("is not open for writing"))
        #expect(refusal(.ndjson(descriptor: 9_999)).contains("is not open for writing"))
    }
}

@Suite struct StallWatchErrorTests {
    @Test func `the description ends with the system's message, if there is one`() {
        let error = StallWatchError(.unwritableReports, "the disk", errno: 28)
        #expect(error.description == "the disk: No space left on device")
        #expect(StallWatchError(.stopped, "the monitor has been stopped").description == "the monitor has been stopped")
        #expect(StallWatchError.Code.alreadyWatched.description == "alreadyWatched")
    }
}
