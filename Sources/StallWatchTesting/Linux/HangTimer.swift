import Glibc
import LinuxSupport
import StallReports
import StallSymbols
import StallWatch
import Synchronization
import Testing

struct HangCheck: Sendable {
    let limit: Duration

    func run(_ test: Test, _ function: @Sendable () async throws -> Void) async throws {
        let name = WatchedFunction(test).name
        // This task runs the test.
        let task = HangDump.currentTask
        let timer: HangTimer
        do throws(SystemError) {
            timer = try HangTimer(limit: nanoseconds(limit)) { since in Self.report(name, task, since) }
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
    private static func report(_ test: String, _ task: ReportedTasks, _ since: UInt64) -> HangTimer.Hang {
        let age = (monotonicNow() &- since) / 1_000_000
        var lines = ["stallwatch: \(test) has not finished after \(Double(age) / 1_000) s"]
        var json: String?
        do throws(StallWatchError) {
            if let report = try HangDump.take(test, since: since, directory: nil, tasks: task) {
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
        _ = writeAll(Array(text.utf8), to: STDERR_FILENO, waitingForReader: true)
        return HangTimer.Hang(text: text, json: json)
    }
}

final class HangTimer: Sendable {
    struct Hang: Equatable, Sendable {
        var text: String
        var json: String?
    }

    /// One report at a time: those of tests that wait for the same one would capture the same threads at once.
    private static let reporting = Mutex<Void>(())

    private let hasEnded = Semaphore()
    private let hang = Mutex<Hang?>(nil)

    /// Starts the thread, which calls `report` once with the time at which the test began, in monotonic nanoseconds.
    init(limit: UInt64, report: @escaping @Sendable (UInt64) -> Hang) throws(SystemError) {
        let began = monotonicNow()
        try WorkerThread(name: "stallwatch-hang") { [self] in
            guard !hasEnded.wait(until: began &+ limit) else { return }
            Self.reporting.withLock { _ in
                // The test may have ended during the report of another one.
                guard !hasEnded.wait(until: began &+ limit) else { return }
                let found = report(began)
                hang.withLock { $0 = found }
            }
        }.detach()
    }

    /// Ends the timer; returns what it has reported, `nil` if nothing or if it is about to.
    func end() -> Hang? {
        hasEnded.post()
        return hang.withLock { $0 }
    }
}
