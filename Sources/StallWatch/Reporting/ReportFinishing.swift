internal import CLinux
import Glibc
import StallReports

/// The last steps before a report leaves the reporter, and the places that it goes to.
struct ReportFinishing: Sendable {
    let settings: Reporter.Settings
    let sinks: SinkSet
    let notices: SinkEventRelay
    let counts: ReportCounts
    let streams: ReportStreams

    /// The report as the sinks see it: with the counts of this moment, shortened paths, and redacted by the app.
    func prepared(_ report: StallReport) -> StallReport {
        var report = report
        let suppressed = counts.current.suppressed
        for reason in [SuppressionReason.repeated, .rateLimit] {
            report.monitor.suppressed[reason] = suppressed[reason]
        }
        report.shortenPaths(settings.pathStyle)
        if let redact = settings.redact, let fault = report.redact(with: redact) {
            notices.post(.notice("redacting made a stall report unusable: only its times were kept", ["reason": fault]))
        }
        return report
    }

    /// Carries out the app's escalation.
    func escalate(_ report: StallReport) {
        switch settings.escalation {
        case nil:
            break
        case .call:
            sinks.submit(.escalated(report))
        case .abort:
            notices.post(.notice("aborting the process: a stall has lasted too long", ["reason": report.summary]))
            sinks.flush()
            // With every signal blocked, as here, the Swift runtime's crash handler makes a SIGSEGV of it (measured).
            _ = clinux_unblock_all_signals()
            abort()
        }
    }
}
