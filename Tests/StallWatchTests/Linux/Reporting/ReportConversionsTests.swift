import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

@Suite struct MillisecondsTests {
    @Test(
        arguments: [
            (0, 0), (499, 0), (500, 0.001), (1_000_000, 1), (250_400_499, 250.4), (250_400_500, 250.401),
        ] as [(UInt64, Double)])
    func nanosecondsAreRoundedToTheMicrosecond(nanoseconds: UInt64, expected: Double) {
        #expect(milliseconds(nanoseconds) == expected)
    }

    @Test func theLongestTimeDoesNotTrap() {
        #expect(milliseconds(.max) > 1e13)
    }
}

/// A directory may have reports of a container's earlier runs, whose processes all had the same id.
@Suite struct OwnReportTests {
    @Test func `a report of an earlier process with the same id is not this one's`() throws {
        var report = try StallReport.literal()
        report.process = .current()
        try #require(report.process.startTicks != nil && report.process.bootID != nil)
        #expect(report.isOfThisProcess)
        report.process.startTicks? -= 1
        #expect(!report.isOfThisProcess)
        report.process.startTicks = nil
        #expect(report.isOfThisProcess, "a redaction has left the id alone")
        report.process.pid += 1
        #expect(!report.isOfThisProcess)
    }
}

@Suite struct OtherThreadLockTests {
    private func thread(_ id: Int32, waitsFor owner: Int32?, isDeadlock: Bool = false) -> StallRecord.OtherThread {
        let memory: (any MemoryReading)? = nil
        let call = SystemCall(number: 202, arguments: [0, 0, 0, 0, 0, 0], stackPointer: 0, programCounter: 0)
        var wait = ThreadWait(call: DescribedCall(call, memory: memory))
        wait.lock = owner.map {
            AwaitedLock(kind: .pthreadMutex, address: 16, function: "pthread_mutex_lock", ownership: .thread($0))
        }
        wait.isDeadlock = isDeadlock
        return StallRecord.OtherThread(
            thread: ThreadIdentity(id: id, name: "worker-\(id)"), stack: .failure(.noSuchThread),
            wait: wait)
    }

    private func locks(_ threads: [StallRecord.OtherThread]) -> [StallReport.Lock?] {
        var record = StallRecord.stub()
        record.otherThreads = threads
        return (ReportBuilder.stub().draft(of: record).otherThreads ?? []).map(\.lock)
    }

    @Test func `a lock has the owner by the name that it was captured with`() {
        let found = locks([thread(1, waitsFor: 2, isDeadlock: true), thread(2, waitsFor: 1, isDeadlock: true)])
        #expect(found.map { $0?.owners.first?.thread.name } == ["worker-2", "worker-1"])
        #expect(found.map { $0?.isDeadlock } == [true, true])
    }

    @Test func `the loop's thread may be the owner`() {
        #expect(locks([thread(1, waitsFor: 4700)]).first??.owners.first?.thread.name == "notes")
    }

    @Test func `a thread that waits for no lock has none`() {
        #expect(locks([thread(1, waitsFor: nil)]) == [nil])
    }
}

@Suite struct ReportContextTests {
    private func captured(_ label: String, task: UInt64? = nil) -> CapturedContext {
        CapturedContext(task: task.map { .init(id: $0) }, payload: ContextPayload(label: label).bytes)
    }

    /// Returns the report of a stall of 100 ms with samples at these ages, each with its context.
    private func report(
        _ samples: [(age: UInt64, context: CapturedContext?)], missing: String? = nil,
        work: String? = nil, change: (inout CapturedStack) -> Void = { _ in }
    ) -> StallReport {
        var record = StallRecord.fixture(milliseconds: 100)
        record.work = work
        record.samples = samples.enumerated().map { index, sample in
            var stack = CapturedStack.stub([0x1000 + UInt64(index)], method: .ptrace, state: .running)
            stack.context = sample.context
            change(&stack)
            return StallRecord.Sample(age: sample.age * 1_000_000, isValid: true, stack: .success(stack))
        }
        var builder = Reporter.Settings.fixture().builder()
        builder.missingContextReason = missing
        return builder.draft(of: record)
    }

    @Test func `the context of most of the time counts`() {
        let report = report([
            (30, captured("short")), (40, captured("long")), (60, captured("long")), (95, captured("last")),
        ])
        #expect(report.context == StallReport.Context(label: "long") && report.missingContextReason == nil)
    }

    @Test func `what the loop says is the label, unless the program has set one`() {
        #expect(report([(50, nil)], work: "GSource save").context == StallReport.Context(label: "GSource save"))
        #expect(report([(50, captured("own", task: 1))], work: "GSource save").context?.label == "own")
    }

    @Test func `no context for most of the time is no context`() {
        #expect(report([(20, nil), (60, nil), (95, captured("last"))]).context == nil)
        #expect(report([]).context == nil && report([]).missingContextReason == nil)
    }

    @Test func `all parts of a context are in the report`() {
        let payload = ContextPayload(
            label: "GET /feed", attributes: Dictionary(uniqueKeysWithValues: (0..<9).map { ("k\($0)", "v") }),
            traceID: "4bf92f3577b34da6a3ce929d0e0e4736", spanID: "00f067aa0ba902b7")
        let context = CapturedContext(
            task: .init(id: 7, name: Array("feed".utf8), isNameCut: true), payload: payload.bytes)
        let described = report([(50, context)]).context
        #expect(described?.taskID == 7 && described?.taskName == "feed" && described?.label == "GET /feed")
        #expect(described?.traceID == "4bf92f3577b34da6a3ce929d0e0e4736" && described?.spanID == "00f067aa0ba902b7")
        #expect(described?.attributes?.count == 8 && described?.omittedAttributes == 1 && described?.isCut == true)
    }

    @Test func `a damaged context is none and says so`() {
        var context = captured("GET /feed", task: 7)
        context.payload[45] ^= 1
        let report = report([(50, context)])
        #expect(report.context == StallReport.Context(taskID: 7))
        #expect(report.missingContextReason == "the app's context was damaged in memory")
    }

    @Test func `why a context is missing is in the report`() {
        let moved = report([(50, nil)], missing: "the layout") { $0.missingContextReason = "the thread went on" }
        #expect(moved.missingContextReason == "the thread went on")
        #expect(report([(50, nil)], missing: "the layout").missingContextReason == "the layout")
        // A scope needs no task.
        let scope = report([(50, captured("import"))], missing: "the layout")
        #expect(scope.context?.label == "import" && scope.missingContextReason == "the layout")
        #expect(report([(50, captured("import", task: 1))], missing: "the layout").missingContextReason == nil)
    }

    @Test func `other threads have their own contexts`() throws {
        var record = StallRecord.fixture()
        let stack = CapturedStack.stub([])
        var other = stack
        other.context = captured("other", task: 9)
        record.otherThreads = [
            .init(thread: .init(id: 1, name: nil), stack: .success(stack)),
            .init(thread: .init(id: 2, name: nil), stack: .success(other)),
        ]
        let threads = try #require(Reporter.Settings.fixture().builder().draft(of: record).otherThreads)
        #expect(threads.map(\.thread.context) == [nil, StallReport.Context(taskID: 9, label: "other")])
    }

    /// The record of OpenTelemetry: ids, valid, flags, size of the attributes.
    private func record(valid: UInt8 = 1, trace: UInt8 = 0xa0, span: UInt8 = 0xb0) -> [UInt8] {
        Array(repeating: trace, count: 16) + Array(repeating: span, count: 8) + [valid, 1, 0, 0]
    }

    @Test func `a span of OpenTelemetry counts where the app's context has none`() {
        let trace = String(repeating: "a0", count: 16)
        let alone = report([(50, CapturedContext(record: record()))]).context
        #expect(alone == StallReport.Context(traceID: trace, spanID: String(repeating: "b0", count: 8)))
        var both = captured("GET /feed")
        both.record = record()
        #expect(report([(50, both)]).context?.traceID == trace)
        both.payload = ContextPayload(label: "x", traceID: String(repeating: "c", count: 32)).bytes
        #expect(report([(50, both)]).context?.traceID == String(repeating: "c", count: 32))
        #expect(report([(50, both)]).context?.spanID == nil, "the span would be of another trace")
    }

    @Test func `a record without a span is none`() {
        #expect(ThreadContextRecord(record(valid: 0)) == nil && ThreadContextRecord(record(valid: 2)) == nil)
        #expect(ThreadContextRecord(Array(record().dropLast())) == nil && ThreadContextRecord([]) == nil)
        #expect(ThreadContextRecord(record(trace: 0))?.traceID == nil)
        #expect(
            ThreadContextRecord(record(span: 0))?.traceID == nil && ThreadContextRecord(record(span: 0))?.spanID == nil)
    }
}

@Suite struct ProcessDescriptionTests {
    private typealias Description = StallReport.ProcessDescription

    @Test func theCallingProcessIsDescribed() throws {
        let process = Description.current()
        #expect(process.pid == getpid())
        #expect(process.executable == readLink("/proc/self/exe"))
        #expect(process.executable.hasSuffix("/" + process.name))
        #expect(!process.architecture.isEmpty)
        #expect(process.architecture.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
        #expect(!process.kernel.isEmpty)
        #expect(process.bootID?.count == 36)
        let started = try #require(process.startedAt)
        let now = Timestamp(wallClockNanoseconds: wallClockNow())
        #expect(started < now)
        #expect(started.microsecondsSince1970 > now.microsecondsSince1970 - 24 * 3_600_000_000)
    }

    private let systemStat = "cpu 1 2 3\nbtime 1795248000\nprocesses 17\n"

    private func stat(name: String, ticks: String = "12345") -> String {
        "4700 (\(name)) S 1 4700 4700 0 -1 4194304 100 0 0 0 7 3 0 0 20 0 4 0 \(ticks) 1000000 500\n"
    }

    /// A process's name may contain any character, also parentheses and blanks.
    @Test(arguments: ["notes", "a) S 1 (b", ")", "(", "", "two words"])
    func theStartTimeIsReadWhateverTheNameIs(name: String) {
        let ticks = Int64(sysconf(Int32(_SC_CLK_TCK)))
        let started = Description.startTime(stat: stat(name: name), systemStat: systemStat)
        #expect(started?.microsecondsSince1970 == 1_795_248_000_000_000 + 12_345 * 1_000_000 / ticks)
    }

    @Test func `without one of its sources, the start time is unknown`() {
        let whole = stat(name: "notes")
        #expect(Description.startTime(stat: nil, systemStat: systemStat) == nil)
        #expect(Description.startTime(stat: whole, systemStat: nil) == nil)
        #expect(Description.startTime(stat: whole, systemStat: "cpu 1 2 3\n") == nil)
        #expect(Description.startTime(stat: whole, systemStat: "btime soon\n") == nil)
        #expect(Description.startTime(stat: "4700 notes S 1", systemStat: systemStat) == nil)
        #expect(Description.startTime(stat: "4700 (notes) S 1 2 3", systemStat: systemStat) == nil)
        #expect(Description.startTime(stat: stat(name: "notes", ticks: "x"), systemStat: systemStat) == nil)
    }
}
