public import StallReports

extension StallMonitor {
    /// The features that work for this monitor in this process, found by trying them.
    ///
    /// Capture methods are tried once per process, on threads created for that; all other features at each access. An
    /// access takes some milliseconds on the calling thread, and less than a second if the system does not respond. It
    /// loads libdw, unless the configuration asks for no lines. It does not affect the app's threads.
    ///
    /// ```swift
    /// for feature in monitor.capabilities.missing {
    ///     print(feature.name.rawValue, feature.loss ?? "", feature.remedies)
    /// }
    /// ```
    public var capabilities: Capabilities { capabilityProbe.capabilities(loadsLibrary: true) }
}
