import LinuxSupport
import Synchronization
import TestSupport
import Testing

@testable import StallReports
@testable import StallWatch

/// A report has the context of the thread that stalled.
@Suite(.serialized) struct ContextTests {
    private typealias Way = StalledThread.Way
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    private let feed = StallContext("GET /feed", ["route": "/feed"], traceID: trace, spanID: span)

    @Test(arguments: StalledThread.Way.allCases)
    func `a stall has the context of its scope`(way: StalledThread.Way) throws {
        let report = try StalledThread.report { [feed] stall in withStallContext(feed) { stall(way) } }
        let context = try #require(report?.context)
        #expect(context.label == "GET /feed" && context.attributes == ["route": "/feed"])
        #expect(context.traceID == Self.trace && context.spanID == Self.span)
        #expect(context.taskID == nil && context.isCut == nil && report?.missingContextReason == nil)
    }

    @Test(arguments: StalledThread.Way.allCases)
    func `a stall in a task has its value, its id and its name`(way: StalledThread.Way) throws {
        let id = Mutex<UInt64?>(nil)
        let report = try StalledThread.report { [feed] stall in
            let task = TaskOnThread.run(name: "feed-task") { StallContext.$current.withValue(feed) { stall(way) } }
            id.withLock { $0 = task }
        }
        let context = try #require(report?.context)
        #expect(context.label == "GET /feed" && context.traceID == Self.trace && context.spanID == Self.span)
        #expect(context.taskID != nil && context.taskID == id.withLock { $0 } && context.taskName == "feed-task")
    }

    @Test(arguments: StalledThread.Way.allCases)
    func `a value outside of tasks counts, too`(way: StalledThread.Way) throws {
        let report = try StalledThread.report { [feed] stall in
            StallContext.$current.withValue(feed) { stall(way) }
        }
        #expect(report?.context?.label == "GET /feed" && report?.context?.taskID == nil)
    }

    @Test func `a context has ended when its function has returned`() throws {
        let report = try StalledThread.report { [feed] stall in
            withStallContext(feed) {}
            stallwatchPushContext("c", nil, nil)
            stallwatchPopContext()
            stallwatchPopContext()
            StallContext.$current.withValue(feed) {}
            stall(.sleeping)
        }
        #expect(report != nil && report?.context == nil && report?.missingContextReason == nil)
    }

    @Test func `a task without a name or a context has its id only`() throws {
        let report = try StalledThread.report { stall in TaskOnThread.run { stall(.sleeping) } }
        let context = try #require(report?.context)
        #expect(context == StallReport.Context(taskID: context.taskID) && context.taskID != nil)
    }

    @Test(arguments: StalledThread.Way.allCases)
    func `a child of a task has the context of its parent`(way: StalledThread.Way) throws {
        let report = try StalledThread.report { [feed] stall in
            TaskOnThread.run(name: "parent") {
                await StallContext.$current.withValue(feed) {
                    await withTaskGroup(of: Void.self) { group in
                        group.addTask(name: "child") {
                            await withTaskGroup(of: Void.self) { $0.addTask(name: "grandchild") { stall(way) } }
                        }
                    }
                }
            }
        }
        #expect(report?.context?.label == "GET /feed" && report?.context?.taskName == "grandchild")
    }

    @Test func `a task that inherits nothing has no context`() throws {
        let report = try StalledThread.report { [feed] stall in
            StallContext.$current.withValue(feed) {
                _ = TaskOnThread.run { await Task.detached(executorPreference: Inline()) { stall(.sleeping) }.value }
            }
        }
        #expect(report?.context?.taskID != nil && report?.context?.label == nil)
    }

    /// Which of two contexts is further inside.
    @Test(arguments: 0..<7)
    func `the innermost context counts`(order: Int) throws {
        let inner = StallContext("inner")
        let report = try StalledThread.report { [feed] stall in
            switch order {
            case 0: withStallContext(feed) { withStallContext(inner) { stall(.sleeping) } }
            case 1: withStallContext(feed) { StallContext.$current.withValue(inner) { stall(.sleeping) } }
            case 2: StallContext.$current.withValue(feed) { withStallContext(inner) { stall(.sleeping) } }
            case 3:
                withStallContext(feed) {
                    _ = TaskOnThread.run { StallContext.$current.withValue(inner) { stall(.spinning) } }
                }
            case 4:
                TaskOnThread.run {
                    StallContext.$current.withValue(feed) {
                        stallwatchPushContext("inner", nil, nil)
                        stall(.sleeping)
                        stallwatchPopContext()
                    }
                }
            case 5:
                // A scope of Swift inside one of C is not ended from C.
                stallwatchPushContext("outer", nil, nil)
                withStallContext(inner) {
                    stallwatchPopContext()
                    stall(.sleeping)
                }
                stallwatchPopContext()
            default:
                // The value of a child of the task is found in its parent.
                StallContext.$current.withValue(inner) { _ = TaskOnThread.run { stall(.spinning) } }
            }
        }
        #expect(report?.context?.label == "inner")
    }

    @Test func `what is too long is cut and marked`() throws {
        let many = Dictionary(uniqueKeysWithValues: (0..<20).map { ("key\($0)", String(repeating: "v", count: 100)) })
        let report = try StalledThread.report { stall in
            TaskOnThread.run(name: String(repeating: "n", count: 500)) {
                withStallContext(String(repeating: "ü", count: 200), many) { stall(.sleeping) }
            }
        }
        let context = try #require(report?.context)
        #expect(context.label == String(repeating: "ü", count: 64))
        #expect(context.taskName == String(repeating: "n", count: 128))
        #expect(context.isCut == true && context.attributes?.count == 8 && context.omittedAttributes == 12)
        #expect(context.attributes?.values.allSatisfy { $0.utf8.count == 64 } == true)
    }

    @Test func `a text of C that is not UTF-8 is cut and marked`() throws {
        let report = try StalledThread.report { stall in
            let label: [CChar] = [0x61, 0x62, -1, 0x63, 0]
            stallwatchPushContext(label, Self.trace, "no span")
            stall(.sleeping)
            stallwatchPopContext()
        }
        let context = try #require(report?.context)
        #expect(context.label == "ab" && context.isCut == true)
        #expect(context.traceID == Self.trace && context.spanID == nil)
    }

    @Test func `the app's redaction removes a context`() throws {
        let report = try StalledThread.report {
            $0.context = nil
        } _: { [feed] stall in
            withStallContext(feed) { stall(.sleeping) }
        }
        #expect(report != nil && report?.context == nil)
    }
}

/// Runs each job at once, on the thread that enqueues it.
private final class Inline: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
    }
}

/// A thread whose one turn stalls until it is reported, in a context that the test has set before the turn begins.
final class StalledThread: Sendable {
    enum Way: CaseIterable {
        /// It sleeps: its stack is read.
        case sleeping
        /// It computes: it is stopped.
        case spinning
    }

    private let probe = LoopProbe(label: "worked")
    private let isReported = Atomic<Bool>(false)
    private let reported = Semaphore()
    private let reports = Mutex<[StallReport]>([])

    private init() {}

    /// Stalls a thread and returns the report, `nil` if none comes in time; `body` calls its parameter, which stalls.
    static func report(
        redact: (@Sendable (inout StallReport) -> Void)? = nil,
        _ body: @escaping @Sendable (_ stall: @escaping @Sendable (Way) -> Void) -> Void
    ) throws -> StallReport? {
        let stalled = StalledThread()
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(30),
            outputs: [.closure { report in stalled.reports.withLock { $0.append(report) } }])
        configuration.onEvent = { event in
            guard case .began = event else { return }
            stalled.isReported.store(true, ordering: .releasing)
            stalled.reported.post()
        }
        configuration.privacy.redact = redact
        // The names of this program's functions cost more than all else, and no test reads them.
        configuration.symbols.lookup = .none
        configuration.repeats.reportsEveryRepeat = true
        let monitor = try StallMonitor(configuration)
        // A monitor finds the layout on a thread of its own, which may be later than a stall right after its start.
        _ = StallContext.calibration
        try monitor.watch(.probe(stalled.probe))
        try monitor.start()
        let thread = try WorkerThread(name: "worked") { body { stalled.stall($0) } }
        thread.join()
        _ = monitor.settle(["worked"], until: endOfPatience)
        monitor.stop()
        return stalled.reports.withLock { $0.first }
    }

    private func stall(_ way: Way) {
        let deadline = endOfPatience
        probe.beginTurn()
        switch way {
        case .sleeping: _ = reported.wait(until: deadline)
        case .spinning:
            while !isReported.load(ordering: .acquiring), monotonicNow() < deadline {}
        }
        probe.endTurn()
    }
}
