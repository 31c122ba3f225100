public import StallReports

extension StallReport {
    /// This report with the names and lines that can be found for its frames, on any machine and at any time later.
    ///
    /// Frames are looked up by their images' build IDs and their offsets. A frame for which nothing better is found stays as
    /// it is. The callout and the culprit follow from the names; the images say why names or lines are still missing.
    ///
    /// - Parameters:
    ///   - sources: Where to look.
    ///   - inApp: What is not the app's own code.
    /// - Returns: The report, with as much as was found.
    public func symbolicated(
        with sources: DebugSources, inApp: InAppSettings = InAppSettings()
    ) -> StallReport {
        OfflineSymbolication(sources, inApp: inApp).symbolicate(self)
    }
}

extension Sequence where Element == StallReport {
    /// These reports with the names and lines that can be found for their frames.
    ///
    /// Faster than one report after another: the data read from a file for one report is kept for the next, within the
    /// memory limit. The time limit applies to all reports together.
    ///
    /// - Parameters:
    ///   - sources: Where to look.
    ///   - inApp: What is not the app's own code.
    /// - Returns: As many reports, in the same order.
    public func symbolicated(
        with sources: StallReport.DebugSources, inApp: InAppSettings = InAppSettings()
    ) -> [StallReport] {
        let symbolication = OfflineSymbolication(sources, inApp: inApp)
        let deadline = symbolication.deadline
        return map { symbolication.symbolicate($0, until: deadline) }
    }
}
