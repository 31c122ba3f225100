public import StallReports

extension StallReport {
    /// Returns the report as it is: files of Linux are read on Linux only.
    ///
    /// - Parameters:
    ///   - sources: Where to look.
    ///   - inApp: What is not the app's own code.
    /// - Returns: The report.
    public func symbolicated(
        with sources: DebugSources, inApp: InAppSettings = InAppSettings()
    ) -> StallReport { self }
}

extension Sequence where Element == StallReport {
    /// Returns the reports as they are: files of Linux are read on Linux only.
    ///
    /// - Parameters:
    ///   - sources: Where to look.
    ///   - inApp: What is not the app's own code.
    /// - Returns: The reports.
    public func symbolicated(
        with sources: StallReport.DebugSources, inApp: InAppSettings = InAppSettings()
    ) -> [StallReport] { Array(self) }
}
