import CLinux
import Foundation
import Glibc
import Synchronization
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import stallwatch_scenarios

/// Two engines, as a watchdog and a profile have them, capture the same thread.
@Suite(.needsPtrace) struct ConcurrentCaptureTests {
    private final class Shared: Sendable {
        let thread = Atomic<Int32>(0)
        let isOver = Atomic<Bool>(false)
    }

    /// A thread has one tracer at a time, and a second one is refused; that must not look like a system without ptrace,
    /// in which threads get signals.
    @Test func `engines that stop one thread stay with ptrace`() throws {
        let shared = Shared()
        let spinner = try WorkerThread(name: "spinner") {
            shared.thread.store(clinux_gettid(), ordering: .releasing)
            while !shared.isOver.load(ordering: .relaxed) {}
        }
        let engines = try (0..<2).map { _ in OneShotTransfer(ThreadCapture(engine: try CUnwindEngine())) }
        let results = Mutex<[(methods: [StallReport.CaptureMethod], stacks: Int)]>([])
        let workers = try engines.map { engine in
            try WorkerThread(name: "capturer") {
                guard let capture = engine.take() else { return }
                while shared.thread.load(ordering: .acquiring) == 0 {}
                var (stacks, attempts) = (0, 0)
                let end = endOfPatience
                while attempts < 200, monotonicNow() < end {
                    do {
                        let stack = try capture.capture(thread: shared.thread.load(ordering: .acquiring))
                        if stack.method == .ptrace { stacks += 1 }
                    } catch CaptureFailure.timedOut, CaptureFailure.failed(errno: EBUSY),
                        CaptureFailure.refused(errno: EBUSY)
                    {
                        // The spinner has no CPU, or the other engine has it for longer than this one waits.
                        usleep(1_000)
                        continue
                    } catch {}
                    attempts += 1
                }
                results.withLock { $0.append((capture.methods, stacks)) }
            }
        }
        for worker in workers { worker.join() }
        shared.isOver.store(true, ordering: .relaxed)
        spinner.join()
        let all = results.withLock { $0 }
        #expect(all.count == 2)
        for (methods, stacks) in all {
            #expect(methods.contains(.ptrace) && !methods.contains(.signal))
            #expect(stacks >= 50, "\(stacks) of 200")
        }
    }
}

/// A thread that responds neither to ptrace nor to a signal.
@Suite(.serialized) struct UninterruptibleSleepTests {
    /// Each wait takes about 10 us, and the thread repeats it every 35 us: a capture may fail, and is repeated.
    @Test func aThreadInManyShortSleepsHasAStack() throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let syncing = try SyncingThread()
        defer {
            syncing.isOver.store(true, ordering: .relaxed)
            syncing.hasEnded.wait()
        }
        for _ in 0..<50 {
            usleep(.random(in: 0..<1000))
            #expect(try captured(tries: 20) { try capture.capture(thread: syncing.id) } != nil)
        }
    }
}

/// Captures until that works: a thread may move meanwhile, and one that waits for a CPU does not stop in time.
func captured(tries: Int, _ capture: () throws -> CapturedStack) throws -> CapturedStack? {
    for _ in 0..<tries {
        do {
            return try capture()
        } catch CaptureFailure.failed(errno: EBUSY) {
            // The helper still waits for the thread that did not stop in time.
            usleep(100_000)
        } catch CaptureFailure.moved, CaptureFailure.notBlocked, CaptureFailure.timedOut {
        }
    }
    return nil
}

private final class SyncingThread: Sendable {
    private let kernelID = Atomic<Int32>(0)
    let isOver = Atomic<Bool>(false)
    let hasEnded = DispatchSemaphore(value: 0)

    init() throws {
        let file = try ScratchFile(megabytes: 1, in: ".")
        Thread.detachNewThread { [self] in
            kernelID.store(clinux_gettid(), ordering: .releasing)
            while !isOver.load(ordering: .relaxed) { synchronize(file, for: .milliseconds(20)) }
            file.close()
            hasEnded.signal()
        }
        while kernelID.load(ordering: .acquiring) == 0 { sched_yield() }
    }

    var id: Int32 { kernelID.load(ordering: .relaxed) }
}

/// The scenarios, stalled on CPU and in a sleep, under a filter of system calls.
///
/// strace(1) cannot show whether a capture sends signals: no other process can stop a traced process by ptrace, so the
/// capture would use a signal. Instead, a seccomp filter kills the process when it sends a signal.
@Suite(.serialized) struct NoSignalTests {
    @Test(.needsPtrace) func noSignalIsSentToCaptureAThread() throws {
        let run = try ScenariosRun(["FORBID_SIGNALS": "1"])
        // A duration may be wrong on a busy machine; a signal would have killed it.
        #expect([.exit(0), .exit(1)].contains(run.endedBy), "\(run.output)")
        #expect(run.methods["spinTheCPU(for:)"] == [.ptrace])
        #expect(run.methods["sleepTooLong(for:)"] == [.read])
        #expect(run.permitted == [[.read, .ptrace]])
    }

    /// With both refused, a running thread has no stack.
    @Test func `a filter that kills for signals costs stacks, and not the program`() throws {
        let run = try ScenariosRun(["FORBID_CALLS": "ptrace:1", "FORBID_SIGNALS": "1"])
        #expect(run.endedBy == .exit(1), "\(run.output)")
        #expect(run.methods["spinTheCPU(for:)"] == nil)
        #expect(run.methods["sleepTooLong(for:)"] == [.read])
    }

    /// The reference: the filter ends a program that sends a signal, so these tests can fail.
    @Test func aSentSignalIsFatalUnderTheFilter() throws {
        let directory = try TemporaryDirectory()
        let result = try Command(
            program: "/bin/sh", arguments: ["-c", "kill -0 $$"],
            environment: ["FORBID_SIGNALS": "1", "LD_PRELOAD": try Preload.forbid.make(in: directory)]
        ).run()
        #expect(result.reason == .uncaughtSignal && result.status == SIGSYS, "\(result.text)")
    }
}

/// One run of the scenarios with two stalls, and the values of its reports.
private struct ScenariosRun {
    enum End: Equatable {
        case exit(Int32)
        case signal(Int32)
    }

    let endedBy: End
    let output: String
    /// The capture methods of the samples, by the function that stalled.
    private(set) var methods: [String: Set<StallReport.CaptureMethod>] = [:]
    private(set) var permitted: Set<[StallReport.CaptureMethod]> = []

    init(_ environment: [String: String]) throws {
        let directory = try TemporaryDirectory()
        let reports = directory.path("reports")
        let result = try Command(
            program: try Command.product("stallwatch-scenarios"),
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

/// C++ exceptions of the host program do not go through libunwind.
///
/// libunwind also exports `_Unwind_RaiseException`. If the program's own link line names libunwind, every C++ exception
/// goes through it and takes twenty times as long.
@Suite struct ExceptionOwnerTests {
    @Test func `exceptions of the host program go through libgcc`() throws {
        let directory = try TemporaryDirectory()
        let owner = try Command(
            program: try Command.product("stallwatch-scenarios"),
            environment: ["LD_PRELOAD": try Preload.exceptionOwner.make(in: directory)]
        ).succeed()
        #expect(owner.contains("/libgcc_s.so.1"), "\(owner)")
    }
}
