public import StallSymbols

extension StallMonitor {
    /// How a monitor looks up names and lines.
    public typealias Symbolication = SymbolicationSettings
    /// Which code belongs to the app.
    public typealias InApp = InAppSettings
}
