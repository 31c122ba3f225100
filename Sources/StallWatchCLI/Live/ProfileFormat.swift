import StallReports

/// A format of a profile of a live process.
enum ProfileFormat: String, CaseIterable {
    case text, pprof, firefox, speedscope, html, collapsed, perf, json

    /// Whether the format is binary.
    var isBinary: Bool { exported?.isBinary ?? false }

    /// The format that stalls are exported in, too; `nil` for the others.
    private var exported: ExportFormat? {
        switch self {
        case .pprof: .pprof
        case .firefox: .firefox
        case .speedscope: .speedscope
        case .collapsed: .collapsed
        case .perf: .perf
        case .text, .html, .json: nil
        }
    }

    /// The contents of a file that another tool reads; empty for the other formats.
    func data(_ answer: ProfileAnswer) -> [UInt8] {
        var profile = StallProfile(of: .samples)
        for thread in answer.threads { profile.add(profile: thread.report) }
        return exported?.data(profile) ?? []
    }
}
