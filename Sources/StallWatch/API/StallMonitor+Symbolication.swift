public import StallReports

extension StallMonitor {
    /// The settings for looking up function names and source lines.
    public typealias Symbolication = SymbolicationSettings
    /// The rules that decide which code belongs to the app.
    public typealias InApp = InAppSettings
}
