public import StallReports

extension StallMonitor {
    /// The abilities of this monitor in this process, tried for real.
    ///
    /// Capture methods are tried on threads made for it, once per process; everything else is tried at each access. An
    /// access takes some milliseconds on the calling thread, and less than a second where the system does not answer. It
    /// loads libdw, unless the configuration asks for no lines. The app's threads are not affected.
    ///
    /// ```swift
    /// for feature in monitor.capabilities.missing {
    ///     print(feature.name.rawValue, feature.loss ?? "", feature.remedies)
    /// }
    /// ```
    public var capabilities: Capabilities { capabilityProbe.capabilities(loadsLibrary: true) }
}
