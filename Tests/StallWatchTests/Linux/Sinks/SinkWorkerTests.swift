import LinuxSupport
import Synchronization
import Testing
import TestSupport

@testable import StallReports
@testable import StallWatch

/// What a sink has not received: each report is lost once, or not at all.
@Suite struct SinkWorkerTests {
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
}
