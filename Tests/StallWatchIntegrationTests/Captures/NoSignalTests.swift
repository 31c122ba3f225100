import Foundation
import TestSupport
import Testing

@testable import StallReports

/// The demo, stalled on CPU and in a sleep, under a filter of system calls.
///
/// strace(1) cannot show whether a capture sends signals: no other process can stop a traced process by ptrace, so the
/// capture would use a signal. Instead, a seccomp filter kills the process when it sends a signal.
@Suite(.serialized) struct NoSignalTests {
    @Test func noSignalIsSentToCaptureAThread() throws {
        let run = try DemoRun(["FORBID_SIGNALS": "1"])
        #expect(run.endedBy == .exit(0), "\(run.output)")
        #expect(run.methods["spinTheCPU(for:)"] == [.ptrace])
        #expect(run.methods["sleepTooLong(for:)"] == [.read])
        #expect(run.permitted == [[.read, .ptrace]])
    }

    /// Where ptrace(2) is refused, a signal replaces it, and reports show that.
    @Test func aRefusedPtraceIsReplacedByASignal() throws {
        let run = try DemoRun(["FORBID_CALLS": "ptrace:1"])
        #expect(run.endedBy == .exit(0), "\(run.output)")
        #expect(run.methods["spinTheCPU(for:)"] == [.signal])
        // A blocked thread is still only read, because a signal would end its sleep early.
        #expect(run.methods["sleepTooLong(for:)"] == [.read])
        #expect(run.permitted == [[.read, .signal]])
    }

    /// The reference: with both refused, the signal is sent and is fatal, so the first test can fail.
    @Test func aSentSignalIsFatalUnderTheFilter() throws {
        let run = try DemoRun(["FORBID_CALLS": "ptrace:1", "FORBID_SIGNALS": "1"])
        #expect(run.endedBy == .signal(SIGSYS), "\(run.output)")
    }
}

/// One run of the demo with two stalls, and the values of its reports.
private struct DemoRun {
    enum End: Equatable {
        case exit(Int32)
        case signal(Int32)
    }

    let endedBy: End
    let output: String
    /// The capture methods of the samples, by the function that stalled.
    private(set) var methods: [String: Set<StallReport.CaptureMethod>] = [:]
    /// The permitted capture methods in the reports, without perf.
    ///
    /// A report lists perf only after a try, and the monitor tries it only if the thread had a clock tick in the kernel.
    private(set) var permitted: Set<[StallReport.CaptureMethod]> = []

    /// Runs the demo with that environment.
    init(_ environment: [String: String]) throws {
        let directory = try TemporaryDirectory()
        let reports = directory.path("reports")
        let result = try Command(
            program: try Command.product("stallwatch-demo"),
            arguments: ["--scenario", "cpu-spin", "--scenario", "sleep", "--quiet", "--output", reports],
            environment: environment.merging(["LD_PRELOAD": try Preload.forbid.make(in: directory)]) { $1 }
        ).run()
        endedBy = result.reason == .exit ? .exit(result.status) : .signal(result.status)
        output = result.text
        let files = (try? FileManager.default.contentsOfDirectory(atPath: reports)) ?? []
        for file in files where file.hasSuffix(".json") {
            let data = try Data(contentsOf: URL(fileURLWithPath: reports).appendingPathComponent(file))
            let report = try StallReport(jsonData: [UInt8](data))
            permitted.insert((report.monitor.captureMethods ?? []).filter { $0 != .perf })
            methods[report.culprit?.function ?? "", default: []].formUnion(report.samples.compactMap(\.method))
        }
    }
}
