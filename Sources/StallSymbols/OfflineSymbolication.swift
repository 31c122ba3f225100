import LinuxSupport
public import StallReports

/// Gives reports their names and lines after the fact, one after another: what was read for one is there for the next.
package final class OfflineSymbolication {
    private let symbolication: ReportSymbolication
    private let debuginfod: DebuginfodClient?
    private let limit: UInt64

    /// - Parameters:
    ///   - directories: Directories with debug files or unstripped images, which are searched before `/usr/lib/debug`: files
    ///     are found by build ID (`.build-id/ab/cdef.debug`), by the name in `.gnu_debuglink`, and by the image's own name
    ///     or path, with or without `.debug`. A file with another build ID is never used.
    ///   - usesDebuginfod: Whether files that no directory has are requested from the servers in `DEBUGINFOD_URLS`.
    ///   - timeLimit: Each report's time, requests to servers included; the rest of the names stays as it was. In the last
    ///     second no server is asked: noticing that one does not answer may take that long.
    package convenience init(
        directories: [String] = [], usesDebuginfod: Bool = false, timeLimit: Duration = .seconds(60)
    ) {
        let debuginfod = usesDebuginfod ? DebuginfodClient() : nil
        var settings = SymbolicationSettings.lines
        settings.debugDirectories = directories
        settings.maximumMemoryBytes = 4 << 30
        self.init(Symbolicator(settings, debuginfod: debuginfod), debuginfod: debuginfod, timeLimit: timeLimit)
    }

    init(_ symbolicator: any Symbolicating, debuginfod: DebuginfodClient? = nil, timeLimit: Duration = .seconds(60)) {
        limit = nanoseconds(timeLimit)
        self.debuginfod = debuginfod
        symbolication = ReportSymbolication(
            symbolicator: symbolicator, functions: FunctionClassifier(InAppSettings()), ownExecutable: nil,
            timeLimit: 0, timeout: 0)
    }

    /// The moment, in nanoseconds of CLOCK_MONOTONIC, at which the time limit is over if it begins now.
    package var deadline: UInt64 {
        let (deadline, overflow) = monotonicNow().addingReportingOverflow(limit)
        return overflow ? .max : deadline
    }

    /// The report with the names and lines found until `deadline`, by default within a time limit of its own.
    package func symbolicate(_ report: StallReport, until deadline: UInt64? = nil) -> StallReport {
        let deadline = deadline ?? self.deadline
        debuginfod?.deadline = deadline
        var named = symbolication.symbolicate(report, until: deadline)
        // One that the found names do not change stays: it may be of names that the app has redacted.
        let fingerprint = Fingerprint(named).text
        if report.fingerprint == nil || fingerprint != Fingerprint(report).text { named.fingerprint = fingerprint }
        return named
    }
}

extension Sequence where Element == StallReport {
    /// These reports with the names and lines that can be found for their frames.
    ///
    /// Faster than one report after another: the data read from a file for one report is kept for the next, within the
    /// memory limit. The time limit applies to all reports together.
    ///
    /// - Returns: As many reports, in the same order.
    @_spi(Benchmarks) public func symbolicated() -> [StallReport] {
        let symbolication = OfflineSymbolication()
        let deadline = symbolication.deadline
        return map { symbolication.symbolicate($0, until: deadline) }
    }
}
