import CUnwindTestSupport
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// Operations with a limit, in a monitor that runs.
@Suite(.serialized) struct OperationTests {
    /// An operation is looked at once: by then its task has to wait, also where a thread has had no CPU for a while.
    private static let limit = Duration.milliseconds(500)

    private let directory = TemporaryDirectory.ofTest(isInMemory: true)

    private func started() throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(outputs: [.directory(directory.path)])
        configuration.symbols.lookup = .names
        configuration.repeats.reportsEveryRepeat = true
        configuration.repeats.maximumReportsPerMinute = 10_000
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        return monitor
    }

    /// The report of each overdue operation.
    private var last: [StallReport] {
        // A file may be replaced while it is read.
        directory.reportNames.compactMap { try? directory.report($0) }.filter { $0.kind == .overdue }
    }

    /// What tasks wait for, until it is opened.
    private final class Gate: Sendable {
        private struct State {
            var isOpen = false
            var waiting: [UnsafeContinuation<Void, Never>] = []
        }
        private let state = Mutex(State())

        var count: Int { state.withLock { $0.waiting.count } }

        func wait() async {
            await withUnsafeContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isOpen { state.waiting.append(continuation) }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        }

        func open() {
            let waiting = state.withLock { state in
                state.isOpen = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }
    }

    @Test func `a monitor that stops abandons its operations, which go on`() async throws {
        let monitor = try started()
        let gate = Gate()
        let count = 3
        let tasks = (0..<count).map { number in
            Task.detached {
                await monitor.withLimit(Self.limit, "GET /\(number)") { await gate.wait() }
                return number
            }
        }
        #expect(eventually { last.count { $0.cause?.kind == .continuation } == count })
        #expect(last.allSatisfy { $0.state == .ongoing })
        monitor.stop()
        #expect(last.count == count && last.allSatisfy { $0.state == .abandoned })
        gate.open()
        var sum = 0
        for task in tasks { sum += await task.value }
        #expect(sum == (0..<count).reduce(0, +))
        await monitor.withLimit(Self.limit, "after") { try? await Task.sleep(for: Self.limit * 2) }
        #expect(last.count == count)
    }

    @Test func `only a continuation that nothing holds is likely never resumed`() async throws {
        let monitor = try started()
        let kept = Mutex<[CheckedContinuation<Void, Never>]>([])
        let holding = Task.detached {
            await monitor.withLimit(Self.limit, "held") {
                await withCheckedContinuation { continuation in kept.withLock { $0.append(continuation) } }
            }
        }
        #expect(eventually { last.contains { $0.cause?.kind == .continuation } })
        // Swift says so on the standard error.
        Task.detached {
            await monitor.withLimit(Self.limit, "lost") {
                await withCheckedContinuation { (_: CheckedContinuation<Void, Never>) in }
            }
        }
        func summary(of label: String) -> String { last.first { $0.loop.label == label }?.cause?.summary ?? "" }
        #expect(eventually { summary(of: "lost").contains("likely never resumed: nothing in the ") })
        #expect(!summary(of: "lost").contains("nothing has resumed yet"))
        #expect(summary(of: "held").hasSuffix("a continuation, which nothing has resumed yet."))
        #expect(last.allSatisfy { $0.state == .ongoing } && last.count == 2)
        for continuation in kept.withLock({ $0 }) { continuation.resume() }
        await holding.value
        monitor.stop()
        #expect(last.first { $0.loop.label == "held" }?.state == .ended)
        #expect(last.first { $0.loop.label == "lost" }?.state == .abandoned)
        #expect(summary(of: "lost").contains("likely never resumed"))
    }

    @Test func `nested operations have a limit each`() async throws {
        let monitor = try started()
        defer { monitor.stop() }
        let gate = Gate()
        let task = Task.detached {
            await monitor.withLimit(Self.limit, "outer") {
                await monitor.withLimit(.seconds(60), "quick") { await Task.yield() }
                await monitor.withLimit(Self.limit, "inner") { await gate.wait() }
            }
        }
        #expect(eventually { last.count { $0.cause?.kind == .continuation } == 2 })
        gate.open()
        await task.value
        #expect(eventually { last.count { $0.state == .ended } == 2 })
        #expect(Set(last.map(\.loop.label)) == ["outer", "inner"])
        // Both are about the same task.
        #expect(Set(last.map { $0.waits?.first?.task }).count == 1)
    }

    @Test func `a canceled operation ends in time, and one that ignores it is reported`() async throws {
        let monitor = try started()
        defer { monitor.stop() }
        let gate = Gate()
        let obeying = Task.detached {
            try await monitor.withLimit(.seconds(60), "obeys") { try await Task.sleep(for: .seconds(60)) }
        }
        let ignoring = Task.detached { await monitor.withLimit(Self.limit, "ignores") { await gate.wait() } }
        obeying.cancel()
        ignoring.cancel()
        await #expect(throws: CancellationError.self) { try await obeying.value }
        #expect(eventually { last.contains { $0.cause?.kind == .continuation } })
        gate.open()
        await ignoring.value
        #expect(eventually { last.contains { $0.state == .ended } })
        #expect(last.map(\.loop.label) == ["ignores"])
    }

    @Test func `thousands of operations at once are watched, and those beyond the limits are counted`() async throws {
        let monitor = try started()
        defer { monitor.stop() }
        let gate = Gate()
        let (count, unwatched) = (OperationRegistry.maximumOperations, 500)
        let tasks = (0..<count + unwatched).map { _ in
            Task.detached { await monitor.withLimit(.seconds(60), "many") { await gate.wait() } }
        }
        #expect(eventually { gate.count == count + unwatched })
        #expect(monitor.statistics.unwatchedOperations == unwatched)
        gate.open()
        for task in tasks { await task.value }
        // Their places are free again.
        let second = Gate()
        let overdue = (0..<1_000).map { _ in
            Task.detached { await monitor.withLimit(Self.limit, "late") { await second.wait() } }
        }
        #expect(eventually { last.count { $0.cause?.kind == .continuation } == OperationWatch.maximumReports })
        #expect(eventually { monitor.statistics.suppressed[.rateLimit] == 1_000 - OperationWatch.maximumReports })
        second.open()
        for task in overdue { await task.value }
        #expect(eventually { last.count { $0.state == .ended } == OperationWatch.maximumReports })
        #expect(monitor.statistics.unwatchedOperations == unwatched)
    }

    /// The look at an overdue operation captures the thread that its task runs on, and searches all memory.
    @Test func `readings interrupt no call`() throws {
        let names = (0..<cunwind_test_call_count()).map { String(cString: cunwind_test_call_at($0).name) }
        let inspector = try #require(OperationInspector())
        let reader = try TaskReader.ofThisProcess()
        let blockers = try ["nanosleep", "poll", "read", "epoll_wait"].map { name in
            let index = try #require(names.firstIndex(of: name))
            return try #require(cunwind_test_blocker_start(index, 12))
        }
        let address = Atomic<UInt64>(0)
        let mayEnd = Atomic<Bool>(false)
        let hasEnded = Semaphore()
        Task.detached {
            address.store(SwiftTask.currentAddress, ordering: .relaxed)
            var interrupted = 0
            while !mayEnd.load(ordering: .relaxed) {
                if usleep(3_000) != 0 { interrupted += 1 }
            }
            #expect(interrupted == 0)
            hasEnded.post()
        }
        #expect(eventually { address.load(ordering: .relaxed) != 0 })
        var found = 0
        for _ in 0..<8 {
            let findings = inspector.inspect([address.load(ordering: .relaxed)])
            found += findings[0].threads.isEmpty ? 0 : 1
            #expect(reader.read().searchedBytes > 0)
        }
        mayEnd.store(true, ordering: .relaxed)
        #expect(hasEnded.wait(until: endOfPatience))
        #expect(found > 0)
        for blocker in blockers {
            let result = cunwind_test_blocker_stop(blocker)
            #expect(result.iterations > 0 && result.interrupted == 0 && result.failed == 0)
        }
    }
}
