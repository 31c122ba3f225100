import Glibc
import LinuxSupport
import StallReports
import StallSymbols
import StallWatch
import Synchronization
public import Testing

/// A trait that says what hangs when a test takes too long.
///
/// Create one with ``Testing/Trait/hangDump(after:)``. On a suite it applies to each of its tests.
public struct HangTrait: TestTrait, SuiteTrait, TestScoping {
    private let limit: Duration

    /// Whether the trait applies to the tests of nested suites; always `true`.
    public var isRecursive: Bool { true }

    init(_ limit: Duration) {
        self.limit = limit
    }

    /// Runs a test beside a thread that waits for its end.
    ///
    /// - Parameters:
    ///   - test: The test.
    ///   - testCase: The test's case.
    ///   - function: The code to run.
    /// - Throws: The errors of `function`.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let name = WatchedFunction(test).name
        let timer: HangTimer
        do throws(SystemError) {
            timer = try HangTimer(limit: nanoseconds(limit)) { since in Self.report(name, since) }
        } catch {
            Issue.record("the test is not watched for hangs: \(error.description)", sourceLocation: test.sourceLocation)
            return try await function()
        }
        let result = await Result { try await function() }
        if let hang = timer.end() {
            Attachment.record(hang.text, named: "hang.txt", sourceLocation: test.sourceLocation)
            if let json = hang.json {
                Attachment.record(json, named: "hang.json", sourceLocation: test.sourceLocation)
            }
        }
        try result.get()
    }

    /// Captures all threads and prints what they do, while the test hangs.
    private static func report(_ test: String, _ since: UInt64) -> HangTimer.Hang {
        let age = (monotonicNow() &- since) / 1_000_000
        var lines = ["stallwatch: \(test) has not finished after \(Double(age) / 1_000) s"]
        var json: String?
        do throws(StallWatchError) {
            if let report = try HangDump.take(test, since: since, directory: nil) {
                lines += HangText(report).lines.map { "  " + $0 }
                json = String(decoding: report.jsonData(), as: UTF8.self)
            } else {
                lines.append("  no stacks: the threads could not be captured in time")
            }
        } catch {
            lines.append("  no stacks: \(error)")
        }
        for child in RunningProcess.descendants(of: getpid(), among: RunningProcess.all()) {
            lines.append("  child process \(child.id): \(child.command)")
        }
        let text = lines.map { $0 + "\n" }.joined()
        _ = writeAll(Array(text.utf8), to: STDERR_FILENO)
        return HangTimer.Hang(text: text, json: json)
    }
}

extension Trait where Self == HangTrait {
    /// Prints what hangs when a test has not finished in time: what each thread waits for, who holds the locks, child
    /// processes.
    ///
    /// ```swift
    /// @Test(.hangDump(after: .seconds(30))) func synchronizes() async throws { … }
    /// ```
    ///
    /// It prints once per test, to standard error, while the test hangs, even if the main actor and the task pool are
    /// blocked. The test then goes on, and gets no issue. When it ends, the text and the report with all stacks are
    /// attached to it. A test that does not hang costs a thread that waits. `stallwatch test` does the same for tests
    /// without the trait.
    ///
    /// - Parameter limit: The time after which a test hangs, 10 ms or more; less counts as 10 ms.
    /// - Returns: The trait.
    public static func hangDump(after limit: Duration) -> Self { HangTrait(max(limit, .milliseconds(10))) }
}

/// A thread that reports a test which does not end in time.
final class HangTimer: Sendable {
    struct Hang: Equatable, Sendable {
        var text: String
        var json: String?
    }

    private let hasEnded = Semaphore()
    private let hang = Mutex<Hang?>(nil)

    /// Starts the thread, which calls `report` once with the time at which the test began, in monotonic nanoseconds.
    init(limit: UInt64, report: @escaping @Sendable (UInt64) -> Hang) throws(SystemError) {
        let began = monotonicNow()
        try WorkerThread(name: "stallwatch-hang") { [self] in
            guard !hasEnded.wait(until: began &+ limit) else { return }
            let found = report(began)
            hang.withLock { $0 = found }
        }.detach()
    }

    /// Ends the timer; returns what it has reported, `nil` if nothing or if it is about to.
    func end() -> Hang? {
        hasEnded.post()
        return hang.withLock { $0 }
    }
}
