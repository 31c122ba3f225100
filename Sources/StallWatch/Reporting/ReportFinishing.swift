internal import CLinux
import Glibc
import LinuxSupport
import StallReports

/// The last steps before a report leaves the reporter, and its destinations.
struct ReportFinishing: Sendable {
    let settings: Reporter.Settings
    let sinks: SinkSet
    let notices: SinkEventRelay
    let counts: ReportCounts
    let streams: ReportStreams

    /// Returns the report that the sinks receive: with current counts, shortened paths and the app's redactions.
    ///
    /// If the redaction makes the report invalid, only its times are kept and a notice is logged.
    func prepared(_ report: StallReport) -> StallReport {
        var report = report
        let suppressed = counts.current.suppressed
        for reason in [SuppressionReason.repeated, .rateLimit] {
            report.monitor.suppressed[reason] = suppressed[reason]
        }
        report.shortenPaths(settings.pathStyle)
        if let redact = settings.redact, let fault = report.redact(with: redact) {
            notices.post(.notice("redaction made a stall report invalid: only its times were kept", ["reason": fault]))
        }
        return report
    }

    /// Carries out the configured escalation.
    ///
    /// `.abort` does not return. It first waits for the sinks, for a bounded time. The termination log comes before
    /// either: a closure may end the process, too.
    func escalate(_ report: StallReport) {
        if let path = settings.terminationLog { writeTerminationLog(report, path) }
        switch settings.escalation {
        case nil:
            break
        case .call:
            sinks.submit(.escalated(report))
        case .abort:
            notices.post(.notice("aborting the process: a stall has lasted too long", ["reason": report.summary]))
            sinks.flush()
            // The thread that made this one may block SIGABRT. The Swift runtime's crash handler would then turn it into
            // SIGSEGV (measured).
            _ = clinux_unblock_all_signals()
            abort()
        }
    }

    private func writeTerminationLog(_ report: StallReport, _ path: String) {
        guard let failure = TerminationLog.writeInTime(TerminationLog.message(report), to: path) else { return }
        counts.add { counts in
            counts.failedWrites += 1
            counts.lastWriteError = StallWatchError(.unwritableReports, failure)
        }
        notices.post(.notice("the termination log could not be written", ["reason": failure.description]))
    }
}
