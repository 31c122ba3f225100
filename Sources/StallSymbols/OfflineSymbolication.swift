package import StallReports
import LinuxSupport

/// Gives reports their names and lines after the fact, one after another: what was read for one is there for the next.
package final class OfflineSymbolication {
    private let symbolicator: Symbolicator
    private let debuginfod: DebuginfodClient?
    private let functions: FunctionClassifier
    private let limit: UInt64

    /// - Parameters:
    ///   - sources: Where to look; their time limit is each report's.
    ///   - inApp: What is not the app's own code.
    package init(_ sources: StallReport.DebugSources, inApp: InAppSettings = InAppSettings()) {
        limit = nanoseconds(sources.timeLimit)
        debuginfod = sources.usesDebuginfod ? DebuginfodClient(deadline: 0) : nil
        functions = FunctionClassifier(inApp)
        symbolicator = Symbolicator(
            SymbolicationSettings(
                detail: .lines, debugDirectories: sources.directories, maximumMemoryBytes: sources.maximumMemoryBytes
            ),
            debuginfod: debuginfod
        )
    }

    /// The moment, in nanoseconds of CLOCK_MONOTONIC, at which the time limit is over if it begins now.
    package var deadline: UInt64 {
        let (deadline, overflow) = monotonicNow().addingReportingOverflow(limit)
        return overflow ? .max : deadline
    }

    /// The report with the names and lines that can be found for its frames until `deadline`, by default within a time
    /// limit of its own.
    package func symbolicate(_ report: StallReport, until deadline: UInt64? = nil) -> StallReport {
        let deadline = deadline ?? self.deadline
        debuginfod?.deadline = deadline
        let now = monotonicNow()
        let left = now < deadline ? deadline - now : 0
        return ReportSymbolication(
            symbolicator: symbolicator, functions: functions, ownExecutable: nil, timeLimit: left, timeout: left
        ).symbolicate(report) { _ in }
    }
}
