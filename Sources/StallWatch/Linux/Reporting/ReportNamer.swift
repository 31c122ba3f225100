internal import CLinux
import Glibc
import LinuxSupport
import StallReports

/// Symbolicates reports, decides which are reported, and delivers them to the sinks, on the second stage's thread.
struct ReportNamer {
    let builder: ReportBuilder
    var policy: RepeatPolicy
    let outlet: ReportOutlet
    /// The ids of ongoing stalls that the sinks have received.
    private(set) var open: Set<String> = []
    private(set) var escalated: Set<String> = []
    /// One barrier per store, queued with the last finished stall.
    private(set) var storesReached: [SinkWorker.Barrier] = []

    mutating func report(_ draft: ReportDraft) {
        let (record, sinks) = (draft.record, outlet.sinks)
        let isNew = open.insert(record.id).inserted
        var report = builder.report(of: record, draft: draft.report) { unfinished in
            if record.state == .ongoing { sinks.submit(.init(.updated, outlet.prepared(unfinished))) }
        }
        let fingerprint = Fingerprint(report).text
        report.fingerprint = fingerprint

        guard record.state != .ongoing else {
            report = outlet.prepared(report)
            outlet.settings.storeState?(report)
            sinks.submit(.init(isNew ? .began : .updated, report))
            if record.isEscalated, escalated.insert(record.id).inserted { outlet.escalate(report) }
            return
        }
        open.remove(record.id)
        escalated.remove(record.id)
        end(report, fingerprint, isNew: isNew)
    }

    private mutating func end(_ named: StallReport, _ fingerprint: String, isNew: Bool) {
        var report = named
        let decision = policy.decide(fingerprint, lasting: named.durationMilliseconds, at: monotonicNow())
        report.repeats = decision.repeats.count
        report.repeated = decision.repeats.durations
        let reason = decision.suppressed
        if let reason { outlet.counts.add { $0.suppressed[reason] += 1 } }
        report = outlet.prepared(report)
        outlet.settings.storeState?(report)
        if isNew { outlet.sinks.submit(.init(.began, report)) }
        outlet.sinks.submitFinal(.init(ended: report, suppressed: reason), reached: &storesReached)
        guard reason == nil else { return }
        let dropped = outlet.streams.yield(report)
        if dropped > 0 { outlet.counts.add { $0.reportsDropped += dropped } }
    }
}

struct ReportOutlet: Sendable {
    let settings: Reporter.Settings
    let sinks: SinkSet
    let notices: SinkEventRelay
    let counts: ReportCounts
    let streams: ReportStreams

    /// Returns what the sinks receive: with counts, shortened and redacted; only the times if that makes it invalid.
    func prepared(_ report: StallReport) -> StallReport {
        var report = report
        let suppressed = counts.current.suppressed
        for reason in [SuppressionReason.repeated, .rateLimit] {
            report.monitor.suppressed[reason] = suppressed[reason]
        }
        report.shortenPaths(settings.pathStyle)
        if let redact = settings.redact, let fault = report.redact(with: redact) {
            notices.post(
                .init(notice: "redaction made a stall report invalid: only its times were kept", ["reason": fault]))
        }
        return report
    }

    /// Carries out the configured escalation, after the termination log, because a closure may end the process;
    /// `.abort` first waits for the sinks, for a bounded time.
    func escalate(_ report: StallReport) {
        if let path = settings.terminationLog { writeTerminationLog(report, path) }
        switch settings.escalation {
        case nil:
            break
        case .call:
            sinks.submit(.init(.escalated, report))
        case .abort:
            sinks.submit(.init(.escalated, report))
            notices.post(.init(notice: "aborting the process: a stall has lasted too long", ["reason": report.summary]))
            sinks.flush()
            // The creating thread may block SIGABRT, and Swift's crash handler then turns it into SIGSEGV (measured).
            _ = clinux_unblock_all_signals()
            abort()
        }
    }

    private func writeTerminationLog(_ report: StallReport, _ path: String) {
        guard let failure = TerminationLog.writeInTime(TerminationLog.message(report), to: path) else { return }
        counts.add(StallWatchError(.unwritableReports, failure))
        notices.post(.init(notice: "the termination log could not be written", ["reason": failure.description]))
    }
}
