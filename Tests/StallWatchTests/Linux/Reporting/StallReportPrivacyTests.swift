import Testing
import TestSupport

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

@Suite struct StallReportPrivacyTests {
    private func run(_ settings: Reporter.Settings) throws -> [StallReport] {
        let scratch = try TemporaryDirectory()
        _ = try withReporter([.directory(scratch.path)], settings: settings) { reporter in
            let record = StallRecord.fixture(function: 1, state: .ongoing)
            reporter.submit(record)
            #expect(eventually { scratch.reportNames.count == 1 })
            // Reports of an ongoing stall must reveal no more than the final one.
            let seen = try scratch.reports()
            #expect(seen.allSatisfy { $0.metadata == [:] || $0.metadata["redacted"] == "yes" })
            reporter.submit(record.after(milliseconds: 900))
        }
        return try scratch.reports()
    }

    @Test func `tasks refer to no stack that redaction has removed`() throws {
        func list() -> TaskList {
            var task = TaskList.Task(id: 1, state: .suspended, wait: .continuation, stack: 0)
            task.name = "sync"
            return TaskList(tasks: [task])
        }
        var (report, tasks) = (try StallReport.literal(), list())
        tasks.redact(with: &report) { $0.metadata = [:] }
        #expect(tasks.tasks.map(\.stack) == [0])
        #expect(tasks.tasks.map(\.name) == [nil])
        tasks = list()
        tasks.redact(with: &report) { ($0.stacks, $0.samples, $0.otherThreads) = ([], [], nil) }
        #expect(tasks.tasks.map(\.stack) == [nil])
        (report, tasks) = (try StallReport.literal(), list())
        tasks.redact(with: &report) { $0.frames = [] }
        #expect(tasks.tasks.map(\.stack) == [nil], "an invalid report keeps no stack")
        #expect(report.fault == nil)
    }

    @Test func `a report without the stacks of its tasks has none`() throws {
        var report = try StallReport.literal()
        // Without a stack, a task still tells its actor.
        let names = TaskList(
            tasks: [.init(id: 1, state: .enqueued, wait: .executor, target: 0), .init(id: 2, state: .suspended)],
            executors: [.init(kind: .actor, name: "Secret", address: "0x1")])
        for tasks in [TaskList(tasks: [.init(id: 1, state: .enqueued, wait: .pool, stack: 0)]), names] {
            report = try StallReport.literal()
            report.tasks = tasks
            #expect(report.redact { $0.metadata = [:] } == nil)
            #expect(report.tasks?.tasks.count == tasks.tasks.count)
            let fault = report.redact { report in
                (report.stacks, report.samples, report.otherThreads, report.cause) = ([], [], nil, nil)
            }
            #expect(fault == nil && report.tasks == nil)
        }
        report.tasks = names
        #expect(report.redact { $0.removeTasks() } == nil)
        #expect(report.tasks == nil)
        report.tasks = TaskList(tasks: [.init(id: 1, state: .enqueued, wait: .pool, stack: 5)])
        #expect(report.fault == "tasks: task 1 has the stack 5, but there are 0 stacks")
    }

    @Test func pathsCanBeLeftOut() throws {
        var settings = Reporter.Settings.fixture()
        settings.pathStyle = .fileNames
        let report = try #require(try run(settings).first)
        #expect(report.images.map(\.path) == ["app"])
        #expect(report.process.executable == report.process.name)
        #expect(!String(decoding: report.jsonData(), as: UTF8.self).contains("/bin/"))
    }

    private static let calls: [(target: String?, shortened: String?)] = [
        ("/var/lib/app/wal", "wal"),
        ("/var/lib/app/wal (deleted)", "wal (deleted)"),
        ("/srv/a b/c, d", "c, d"),
        ("/srv/a, b/c", "a, c"),
        ("/run/a/x, pipe:[12], /run/b/y and 3 more", "x, pipe:[12], y and 3 more"),
        ("socket to /run/app/control", "socket to control"),
        ("socket at 127.0.0.1:80", "socket at 127.0.0.1:80"),
        ("12.5 ms", "12.5 ms"),
        ("/", "/"),
        ("", ""),
        (nil, nil),
    ]

    @Test(arguments: calls) func pathsInACauseCanBeLeftOut(target: String?, shortened: String?) throws {
        func call(_ target: String?) -> StallReport.SystemCall { .init(number: 1, name: "read", target: target) }
        var report = try StallReport.literal()
        let whole = target ?? ""
        report.cause = .fixture(
            kind: .lock, summary: "In read(\(whole)); held by thread 5, which is in read(\(whole)/x).")
        report.cause?.systemCall = call(target)
        report.cause?.pagedFile = "/opt/app/data/pages"
        let owner = StallReport.LockOwner(
            thread: .init(id: 5, name: nil), isRunning: false, systemCall: call(target.map { $0 + "/x" })
        )
        report.cause?.lock = StallReport.Lock(kind: .pthreadMutex, isDeadlock: false, owners: [owner])
        let full = report
        report.shortenPaths(.full)
        #expect(report.cause == full.cause)

        report.shortenPaths(.fileNames)
        let cause = try #require(report.cause)
        #expect(cause.systemCall?.target == shortened)
        #expect(cause.pagedFile == "pages")
        let owners = try #require(cause.lock?.owners)
        #expect(owners.first?.systemCall?.target.map { !$0.contains("/") } ?? true)
        #expect(cause.summary.hasPrefix("In read(\(shortened ?? ""));") || target == nil)
        for directory in ["/var", "/srv", "/run", "/opt"] {
            #expect(!String(decoding: report.jsonData(), as: UTF8.self).contains(directory + "/app"))
            #expect(!cause.summary.contains(directory))
        }
    }

    @Test func `redaction sees every report and keeps identifiers`() throws {
        var settings = Reporter.Settings.fixture()
        settings.redact = { report in
            report.process.hostname = "somewhere"
            report.metadata = ["redacted": "yes"]
            report.id = "changed"
            report.state = .abandoned
            report.startedAt = Timestamp(microsecondsSince1970: 0)
        }
        let reports = try run(settings)
        #expect(reports.map(\.process.hostname) == ["somewhere"])
        #expect(reports.map(\.metadata) == [["redacted": "yes"]])
        #expect(reports.map(\.state) == [.ended])
        #expect(reports.map(\.id) != ["changed"])
    }

    /// A faulty redaction must not reveal the data that the app meant to hide.
    @Test func anInvalidRedactedReportKeepsOnlyItsTimes() throws {
        var settings = Reporter.Settings.fixture()
        settings.redact = { report in
            report.metadata = ["redacted": "yes"]
            report.frames = []
        }
        let report = try #require(try run(settings).first)
        #expect(report.durationMilliseconds == 900)
        #expect(report.frames.isEmpty && report.samples.isEmpty && report.images.isEmpty)
        #expect(report.culprit == nil)
        #expect(report.process.hostname == "")
        #expect(report.metadata == [:])
    }

    @Test func `an invalid redacted report has no context and says nothing of other loops`() throws {
        var report = try StallReport.literal()
        report.context = .init(label: "secret")
        report.samples[0].workers = [.init(stack: nil, threads: [.init(id: 1, context: .init(label: "secret"))])]
        report.otherThreads = [.init(thread: .init(id: 1, context: .init(label: "secret")))]
        report.history = .init(
            windowMilliseconds: 5_000, loops: [.init(label: "secret", kind: report.loop.kind, turns: [])])
        #expect(report.redact { $0.durationMilliseconds = -1 } != nil)
        #expect(!String(decoding: report.jsonData(), as: UTF8.self).contains("secret"))
    }
}
