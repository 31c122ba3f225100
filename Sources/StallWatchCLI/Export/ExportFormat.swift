import StallReports

/// A format that another tool reads.
enum ExportFormat: String, CaseIterable {
    case collapsed, speedscope, pprof, firefox, perf, perfetto
    case otlpProfiles = "otlp-profiles"

    /// Whether the format is binary.
    var isBinary: Bool { [.pprof, .perfetto, .otlpProfiles].contains(self) }

    /// The file's contents.
    func data(_ profile: StallProfile) -> [UInt8] {
        switch self {
        case .collapsed: CollapsedStacks.data(profile)
        case .speedscope: SpeedscopeProfile.data(profile, exporter: "stallwatch@\(StallWatchVersion.current)")
        case .pprof: PprofProfile.data(profile, exporter: "stallwatch \(StallWatchVersion.current)")
        case .firefox: FirefoxProfile.data(profile, product: "StallWatch")
        case .perf: PerfScript.data(profile)
        case .perfetto: PerfettoTrace.data(profile)
        case .otlpProfiles: OTLPProfiles.data(profile)
        }
    }
}
