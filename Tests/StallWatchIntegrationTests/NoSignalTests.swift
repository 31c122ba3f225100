import Foundation
import TestSupport
import Testing

@testable import StallReports

/// The demo, stalled on CPU and in a sleep, where system calls are taken away from it.
///
/// strace(1) cannot be asked whether signals are sent: a process that it traces cannot be stopped by anyone else, and so
/// captures by signal. Here a seccomp filter in the process itself makes the first signal that it sends its last act.
@Suite(.serialized) struct NoSignalTests {
    @Test(.repeatedWhileCPUIsStolen) func noSignalIsSentToCaptureAThread() throws {
        let run = try DemoRun(["FORBID_SIGNALS": "1"])
        #expect(run.endedBy == .exit(0), "\(run.output)")
        #expect(run.methods["spinTheCPU(for:)"] == [.ptrace])
        #expect(run.methods["sleepTooLong(for:)"] == [.read])
        #expect(run.permitted == [[.read, .ptrace]])
    }

    /// Where ptrace(2) is refused, a signal takes the place of the stop, and reports say so.
    @Test(.repeatedWhileCPUIsStolen) func aRefusedPtraceIsReplacedByASignal() throws {
        let run = try DemoRun(["FORBID_PTRACE": "1"])
        #expect(run.endedBy == .exit(0), "\(run.output)")
        #expect(run.methods["spinTheCPU(for:)"] == [.signal])
        // A thread that is blocked is still only read: the signal would cut its sleep short.
        #expect(run.methods["sleepTooLong(for:)"] == [.read])
        #expect(run.permitted == [[.read, .signal]])
    }

    /// The reference: with both taken away the signal is sent and is fatal, so the first test can fail.
    @Test func aSentSignalIsFatalUnderTheFilter() throws {
        let run = try DemoRun(["FORBID_PTRACE": "1", "FORBID_SIGNALS": "1"])
        #expect(run.endedBy == .signal(SIGSYS), "\(run.output)")
    }
}

/// libunwind exports `_Unwind_RaiseException`, too; where the program's own link line names it, every C++ exception of the
/// program goes through it and takes twenty times as long.
@Suite struct ExceptionOwnerTests {
    @Test func exceptionsOfTheHostProgramGoThroughLibgcc() throws {
        let directory = try TemporaryDirectory()
        let owner = try Command(
            program: try Command.product("stallwatch-demo"),
            environment: ["LD_PRELOAD": try Preload.exceptionOwner.make(in: directory)]
        ).succeed()
        #expect(owner.contains("/libgcc_s.so.1"), "\(owner)")
    }
}

/// One run of the demo with two stalls, and what was reported.
private struct DemoRun {
    enum End: Equatable {
        case exit(Int32)
        case signal(Int32)
    }

    let endedBy: End
    let output: String
    /// How samples were taken, by the function that stalled.
    private(set) var methods: [String: Set<StallReport.CaptureMethod>] = [:]
    /// What the reports say of which methods there are.
    private(set) var permitted: Set<[StallReport.CaptureMethod]> = []

    /// Runs it with that environment.
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
            permitted.insert(report.monitor.captureMethods ?? [])
            methods[report.culprit?.function ?? "", default: []].formUnion(report.samples.compactMap(\.method))
        }
    }
}
