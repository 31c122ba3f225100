import TestSupport
import Testing

@testable import StallReports

// What redaction leaves of the sentence of a cause.

extension StallReportSummaryTests {
    @Test func aRedactedFunctionIsNotInTheSentence() throws {
        var redacted = try report(cause(.cpu, onCPU: 600, blocked: 400))
        #expect(redacted.cause?.summary.contains("refresh()") == true)
        #expect(redacted.redact { $0.frames[2].function = "hidden" } == nil)
        #expect(redacted.cause?.summary.contains("called by hidden; blocked") == true)
        #expect(redacted.redact { $0.cause?.summary = "Redacted." } == nil)
        #expect(redacted.cause?.summary == "Redacted.")
        var broken = try report(cause(.cpu, onCPU: 600, blocked: 400))
        #expect(broken.redact { $0.durationMilliseconds = -1 } != nil)
        #expect(broken.cause?.summary == "On CPU for 600 of 1000 ms, 60 % of it in the kernel; blocked for 400 ms.")
    }

    @Test func `redaction replaces targets and labels everywhere`() throws {
        let call = StallReport.SystemCall(
            number: 0, name: "read", target: "/secret/a", peers: [.init(role: .writer, pid: 1, target: "/secret/b")])
        let owner = StallReport.LockOwner(
            thread: .init(id: 5, name: nil), isRunning: false, systemCall: call, waitsFor: .dispatchQueue,
            waitsForLabel: "secret", priorityInversion: .init(nice: 1, waiterNice: 0, queue: "secret"))
        var lock = StallReport.Lock(kind: .dispatchQueue, isDeadlock: false, owners: [owner])
        lock.label = "secret"
        var cause = cause(.lock, onCPU: 0, blocked: 500, call: call)
        (cause.lock, cause.pagedFile) = (lock, "/secret/c")
        cause.summary = cause.sentence
        var report = try report(cause)
        report.otherThreads = [.init(thread: .init(id: 7, name: nil), systemCall: call, lock: lock)]
        report.activity = .init(turnsPerSecond: 1)
        report.activity?.readyDescriptor = "descriptor 7, /secret/d"
        var broken = report
        #expect(report.cause?.summary.contains("secret") == true)
        let fault = report.redact { report in
            report.replaceTargets { $0.contains("secret") ? "a path" : $0 }
            report.replaceLockLabels { _ in nil }
        }
        #expect(fault == nil)
        #expect(!String(decoding: report.jsonData(), as: UTF8.self).contains("secret"))
        #expect(report.cause?.systemCall?.target == "a path")
        broken.cause?.lock?.owners[0].thread.name = "secret"
        broken.cause?.lock?.owners[0].systemCall?.peers?[0].thread = .init(id: 8, name: "secret")
        broken.cause?.systemCall?.peers?[0].name = "secret"
        #expect(broken.redact { $0.durationMilliseconds = -1 } != nil)
        #expect(!String(decoding: broken.jsonData(), as: UTF8.self).contains("secret"))
    }

    /// A pool's sentence, and that of an operation, are not made of the cause's fields alone.
    @Test(arguments: [.overdue, .starvation] as [StallKind])
    func `what cannot be written anew without what was removed is left out`(kind: StallKind) throws {
        let call = StallReport.SystemCall(number: 0, name: "read", target: "/secret/a")
        var cause = cause(.io, onCPU: 0, blocked: 500)
        cause.summary = "load() runs on thread 7, which waits in read(/secret/a)."
        var report = try report(cause)
        report.kind = kind
        report.cause?.summary = cause.summary
        report.otherThreads = [.init(thread: .init(id: 7), systemCall: call)]
        var (broken, unchanged) = (report, report)
        #expect(report.redact { $0.replaceTargets { _ in nil } } == nil)
        #expect(!String(decoding: report.jsonData(), as: UTF8.self).contains("secret"))
        #expect(report.cause?.summary == "Why it took so long is left out: the report was redacted.")
        #expect(broken.redact { $0.durationMilliseconds = -1 } != nil)
        #expect(!String(decoding: broken.jsonData(), as: UTF8.self).contains("secret"))
        #expect(unchanged.redact { ($0.metadata, $0.process.hostname) = ([:], "") } == nil)
        #expect(unchanged.cause?.summary == cause.summary)
    }

    @Test func `an overdue operation does not name an executor that was removed`() throws {
        var report = try report(cause(.unknown, onCPU: 0, blocked: 500))
        report.kind = .overdue
        report.cause?.summary = "load() awaits actor Secret."
        report.waits = [.init(kind: .executor, executor: "Secret")]
        #expect(report.redact { $0.removeTasks() } == nil)
        #expect(!String(decoding: report.jsonData(), as: UTF8.self).contains("Secret"))
    }

    @Test func aSentenceOfTheAppsOwnIsKept() throws {
        var report = try StallReport.literal()
        report.cause = cause(.sleep, onCPU: 0, blocked: 500)
        report.cause?.summary = "Redacted."
        report.nameCause(since: report)
        #expect(report.cause?.summary == "Redacted.")
    }
}
