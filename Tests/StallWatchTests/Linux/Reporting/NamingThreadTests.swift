import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallSymbols
@testable import StallWatch

/// A file system that does not answer costs its own images their names, and nothing else.
@Suite(.timeLimit(.minutes(10))) struct NamingThreadTests {
    /// Finds the names of two images, and reads one of them only when a gate is open.
    private final class HalfStuckSymbolicator: Symbolicating {
        private let table = TableSymbolicator(symbols: ["app": [0x1000: "work"], "stuck": [0x1000: "read"]])
        private let gate: Semaphore
        private var access: ImageAccess?

        init(_ gate: Semaphore) { self.gate = gate }

        func use(_ access: ImageAccess) { self.access = access }

        func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> ResolvedAddress {
            guard access?.begin(image) == true else { return ResolvedAddress() }
            if image.path.hasSuffix("stuck") { gate.pass() }
            return table.lookUp(offset, in: image, deadline: deadline)
        }

        func symbol(at offset: UInt64, in image: ImageIdentity) -> String? { nil }
        func calledFunction(before returnAddress: UInt64, in image: ImageIdentity) -> CalledFunction? { nil }
        func function(startingAt address: UInt64, in image: ImageIdentity) -> CalledFunction? { nil }
        func importedSymbol(calledBefore returnAddress: UInt64, in image: ImageIdentity) -> String? { nil }
        func exportedFunction(_ symbol: String, of image: ImageIdentity) -> CalledFunction? { nil }
        func sibling(of function: CalledFunction, in image: ImageIdentity, deadline: UInt64) -> CodeLocation? { nil }
        func reason(for image: ImageIdentity) -> String? { nil }
        func releaseMemory() {}
    }

    /// A stall with a sample in each of the two images.
    private var draft: ReportDraft {
        var record = StallRecord.fixture()
        let images = ["stuck", "app"].enumerated().map { number, name in
            let base = UInt64(number) << 20
            return LoadedImage(
                path: "/mnt/\(name)", base: base, addresses: base..<base + 0x10000, buildID: [UInt8(number)],
                isExecutable: false)
        }
        record.samples = [0x1000, 0x10_1000].enumerated().map { number, address in
            .init(
                age: 250_000_000 + UInt64(number), isValid: true, stack: .success(.stub([address])),
                images: ImageList(images))
        }
        return ReportDraft(record: record)
    }

    private func functions(_ names: inout NamingThread) -> [String?]? {
        names.report(of: draft, unless: { false }) { _ in }?.frames.map(\.function)
    }

    @Test func `a thread that does not return is left, and its image avoided until it does`() throws {
        let gate = Semaphore()
        var names = NamingThread(patience: 500_000_000) { .stub(HalfStuckSymbolicator(gate)) }
        for _ in 0..<2 {
            let found = functions(&names)
            #expect(found == [nil, "work"])
        }
        gate.post()
        let end = endOfPatience
        while functions(&names) != ["read", "work"], monotonicNow() < end { nap() }
        let found = functions(&names)
        #expect(found == ["read", "work"])
    }

    @Test func `the threads that are left are few`() {
        let gate = Semaphore()
        let started = Collected<Int>()
        var names = NamingThread(patience: 60_000_000) {
            started.add(0)
            gate.pass()
            return .stub(["app": [0x1000: "work"]])
        }
        for _ in 0..<2 {
            let found = functions(&names)
            #expect(found == nil)
        }
        // A thread may be left before it has begun.
        #expect(eventually { started.all.count >= NamingThread.maximumLeft })
        #expect(started.all.count == NamingThread.maximumLeft)
        gate.post()
        let end = endOfPatience
        while functions(&names) != [nil, "work"], monotonicNow() < end { nap() }
        let found = functions(&names)
        #expect(found == [nil, "work"])
    }

    @Test func `without time the report says so`() throws {
        var names = NamingThread { .stub([:]) }
        let none = names.report(of: draft, unless: { true }) { _ in }
        #expect(none == nil)
        var report = try StallReport.literal()
        report.excuseMissingNames()
        #expect(report.images.allSatisfy { $0.reason == "the names were not found in time" })
        #expect(report.fault == nil)
    }
}

@Suite(.timeLimit(.minutes(10))) struct RedactionTests {
    @Test func `a closure that does not return is not called again until it does`() throws {
        let gate = Semaphore()
        let calls = Collected<Int>()
        let redaction = Redaction(within: 50_000_000) { report in
            calls.add(0)
            gate.pass()
            report.metadata = ["redacted": "yes"]
        }
        for _ in 0..<2 {
            var report = try StallReport.literal()
            let fault = redaction.apply(to: &report, until: .max)
            #expect(fault == "the closure does not return")
            #expect(report.metadata.isEmpty && report.frames.isEmpty && report.process.hostname == "")
            #expect(report.fault == nil)
        }
        // Its thread may be left before it has begun.
        #expect(eventually { !calls.all.isEmpty })
        #expect(calls.all.count == 1)
        gate.post()
        var metadata: [String: String] = [:]
        let end = endOfPatience
        while metadata.isEmpty, monotonicNow() < end {
            var report = try StallReport.literal()
            if redaction.apply(to: &report, until: .max) == nil { metadata = report.metadata }
            nap()
        }
        #expect(metadata == ["redacted": "yes"])
    }

    @Test func `tasks are redacted in time or not at all`() throws {
        var task = TaskList.Task(id: 1, state: .suspended)
        task.name = "sync"
        let (report, list) = (try StallReport.literal(), TaskList(tasks: [task]))
        let redacted = Redaction(within: patience) { $0.metadata = [:] }.redacted(report, with: list)
        #expect(redacted?.report.metadata == [:])
        #expect(redacted?.tasks?.tasks.map(\.name) == [nil])
        let gate = Semaphore()
        defer { gate.post() }
        let late = Redaction { _ in gate.pass() }.redacted(report, with: list, until: 0)
        #expect(late?.report == nil)
    }

    @Test func `at the end of a monitor nothing waits for the closure`() throws {
        let gate = Semaphore()
        defer { gate.post() }
        let redaction = Redaction(within: patience) { _ in gate.pass() }
        var report = try StallReport.literal()
        let fault = redaction.apply(to: &report, until: 0)
        #expect(fault != nil)
    }
}

extension Semaphore {
    /// Waits until the semaphore is posted once, which lets everyone pass.
    func pass() {
        wait(until: endOfPatience)
        post()
    }
}
