import CLinux
import Foundation
import Glibc
import LinuxSupport
import Synchronization
import Testing
import TestSupport

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// A thread that changes its context all the time is copied at any instruction, and no copy is torn.
@Suite(.serialized) struct ContextSwitchTests {
    private static let captures = 1_000

    /// A thread whose contexts all say the same in the label, an attribute and the trace.
    private final class Switcher: Sendable {
        let isOver = Atomic<Bool>(false)
        let id = Atomic<Int32>(0)
        private let hasBegun = Semaphore()

        func run(waits: Bool) throws -> WorkerThread {
            let thread = try WorkerThread(name: "switching") { [self] in
                id.store(clinux_gettid(), ordering: .releasing)
                hasBegun.post()
                var number = 0
                while !isOver.load(ordering: .acquiring) {
                    number += 1
                    work(number, waits: waits)
                }
            }
            hasBegun.wait()
            return thread
        }

        private func work(_ number: Int, waits: Bool) {
            let context = StallContext(
                "r\(number)", ["number": "\(number)"], traceID: hexadecimal(UInt64(number), width: 32))
            let pause: @Sendable () -> Void = {
                if waits { usleep(150) } else { for _ in 0..<number % 50 { _ = monotonicNow() } }
            }
            switch number % 3 {
            case 0: withStallContext(context) { pause() }
            case 1: _ = TaskOnThread.run(name: "r\(number)") { StallContext.$current.withValue(context) { pause() } }
            default: StallContext.$current.withValue(context) { pause() }
            }
        }
    }

    @Test(arguments: [StallReport.CaptureMethod.ptrace, .read, .signal])
    func `no copy is torn`(method: StallReport.CaptureMethod) throws {
        if method == .ptrace, !mayUsePtrace { return notRun("ptrace(2) is refused") }
        #expect(StallContext.calibration.problem == nil)
        let engine = try CUnwindEngine()
        let switcher = Switcher()
        let thread = try switcher.run(waits: method == .read)
        var (whole, torn) = (0, 0)
        var numbers = Set<String>()
        for _ in 0..<Self.captures {
            guard let context = capture(switcher.id.load(ordering: .acquiring), by: method, engine) else { continue }
            guard !context.payload.isEmpty else { continue }
            guard let payload = ContextPayload(copied: context.payload) else {
                torn += 1
                continue
            }
            let number = String(payload.label.dropFirst())
            numbers.insert(number)
            let isRight =
                payload.attributes.first?.value == number
                && payload.traceID.map { hexadecimal($0) } == UInt64(number).map { hexadecimal($0, width: 32) }
                && (context.task?.name.map { String(decoding: $0, as: UTF8.self) } ?? payload.label) == payload.label
            if isRight { whole += 1 } else { torn += 1 }
        }
        switcher.isOver.store(true, ordering: .releasing)
        thread.join()
        #expect(torn == 0)
        // Most captures meet the thread between two contexts.
        #expect(whole > Self.captures / 100, "\(whole) contexts")
        #expect(numbers.count > 1, "the thread changes its context")
    }

    private func capture(_ thread: Int32, by method: StallReport.CaptureMethod, _ engine: CUnwindEngine)
        -> CapturedContext?
    {
        guard let probe = try? ThreadProbe(thread: thread), let reading = probe.read() else { return nil }
        return try? engine.capture(probe, at: reading, by: method).context
    }
}

/// Contexts that need a process of their own.
@Suite(.serialized) struct ContextHostTests {
    @Test func `the workers of a starved pool have their contexts`() throws {
        let directory = try TemporaryDirectory()
        #expect(try TestHost(["contexts", directory.path, "pool"]).finish().isEmpty)
        func workers(of report: StallReport) -> [StallReport.ThreadDescription] {
            (report.samples.first?.workers ?? []).flatMap(\.threads)
        }
        // The pool's first threads may have no CPU before the tasks are there.
        let report = try #require(
            try directory.reports().first { report in
                report.kind == .starvation && workers(of: report).contains { $0.context?.label != nil }
            })
        let threads = workers(of: report)
        let contexts = threads.compactMap(\.context).filter { $0.label != nil }
        #expect(!contexts.isEmpty)
        for context in contexts {
            // Each worker has its own: label, attribute and task belong together.
            let number = try #require(context.attributes?["number"])
            #expect(context.label == "GET /\(number)" && context.taskName == "request-\(number)")
        }
        #expect(Set(contexts.compactMap(\.taskID)).count == contexts.count)
        #expect(report.context.map(contexts.contains) == true)
        try Repository.validateReports(directory.path).expectNoFault()
    }

    /// The library is there from the start, or loaded later, with thread-local storage that is not allocated yet.
    @Test(arguments: [true, false])
    func `a span of OpenTelemetry is read when it is valid`(isPreloaded: Bool) throws {
        let directory = try TemporaryDirectory()
        let scratch = try TemporaryDirectory()
        let library = try Preload.span.make(in: scratch)
        let host = try TestHost(
            ["contexts", directory.path, "span"] + (isPreloaded ? [] : [library]),
            wrapper: isPreloaded ? ["/usr/bin/env", "LD_PRELOAD=\(library)"] : [])
        #expect(host.finish().isEmpty && host.process.terminationStatus == 0)
        let contexts = try directory.reports().sorted { $0.startedAt < $1.startedAt }.map(\.context)
        try #require(contexts.count == 8)
        let span = StallReport.Context(traceID: "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", spanID: "b0b1b2b3b4b5b6b7")
        var inScope = span
        inScope.label = "kind 1"
        #expect(contexts[0] == nil && contexts[1] == StallReport.Context(label: "kind 0"))
        #expect(contexts[2] == span && contexts[3] == inScope)
        #expect(contexts[4] == nil && contexts[5] == StallReport.Context(label: "kind 2"))
        #expect(contexts[6] == nil && contexts[7] == StallReport.Context(label: "kind 3"))
    }
}
