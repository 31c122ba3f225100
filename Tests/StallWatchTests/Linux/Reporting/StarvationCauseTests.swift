import LinuxSupport
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

@Suite struct StarvationCauseTests {
    private let app = LoadedImage.stub(path: "/opt/notes/bin/notes", addresses: 0x10000..<0x20000, isExecutable: true)
    private let dispatch = LoadedImage.stub(path: "/usr/lib/libdispatch.so", addresses: 0x40000..<0x50000)
    private let builder = ReportBuilder.stub([
        "notes": [0x0100: "blockTheHandler", 0x0200: "compress"],
        "libdispatch.so": [0x0010: "_dispatch_worker_thread"],
    ])

    /// Returns the named report of a starvation of a pool with these workers.
    private func report(_ workers: [(address: UInt64, activity: Cause.Kind?)]) -> StallReport {
        var sample = StallRecord.Sample(
            age: 250_000_000, isValid: true, stack: .failure(.pool),
            images: ImageList([app, dispatch])
        )
        sample.workers = workers.enumerated().map { index, worker in
            StallRecord.OtherThread(
                thread: ThreadIdentity(id: Int32(index + 1), name: nil),
                stack: .success(.stub([worker.address, 0x40010])), activity: worker.activity)
        }
        return builder.report(of: .stub(kind: .starvation, samples: [sample]))
    }

    @Test func bothWorkersSleepInTheSameFunction() {
        let report = report([(0x10100, .sleep), (0x10100, .sleep)])
        #expect(report.cause?.kind == .sleep)
        #expect(report.cause?.confidence == .likely)
        #expect(report.cause?.summary == "Both busy threads of the pool are in blockTheHandler, sleeping.")
        #expect(report.samples.map(\.isComplete) == [true])
    }

    @Test func theLargestGroupOfWorkersDecides() {
        let report = report([(0x10100, .lock), (0x10200, .cpu), (0x10100, .lock)])
        #expect(report.cause?.kind == .lock)
        #expect(report.cause?.confidence == .possible)
        #expect(report.cause?.summary == "2 of 3 busy threads of the pool are in blockTheHandler, waiting for a lock.")
    }

    @Test func aPoolWithoutBusyWorkersHasNoCause() {
        #expect(report([(0x40020, .sleep)]).cause == nil)
        #expect(report([(0x10100, nil)]).cause == nil)
    }
}
