import Glibc
import Synchronization
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StallReports
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
