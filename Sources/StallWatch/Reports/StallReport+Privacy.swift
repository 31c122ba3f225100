/// What of the paths in a report leaves the process.
public struct PathStyle: Sendable, Equatable {
    private enum Value { case full, fileNames }
    private let value: Value

    /// Paths as they are.
    public static let full = PathStyle(value: .full)
    /// File names only.
    ///
    /// Build IDs still tell which file it was.
    public static let fileNames = PathStyle(value: .fileNames)
}

extension StallReport {
    /// Leaves nothing of the paths but what `style` says.
    mutating func shortenPaths(_ style: PathStyle) {
        guard style == .fileNames else { return }
        process.executable = process.name
        for index in images.indices {
            images[index].path = images[index].name
            // It names files in directories.
            images[index].reason = nil
        }
        for index in frames.indices { frames[index].file = frames[index].file.map(Self.fileName) }
        if let file = culprit?.file { culprit?.file = Self.fileName(file) }
    }

    private static func fileName(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    /// Lets the app change the report.
    ///
    /// What other parts go by stays: id, state, times, and indices that lead somewhere.
    ///
    /// - Returns: What the app has broken; the report is then without its stacks.
    mutating func redact(with body: @Sendable (inout StallReport) -> Void) -> String? {
        let original = self
        body(&self)
        schemaVersion = original.schemaVersion
        id = original.id
        kind = original.kind
        state = original.state
        startedAt = original.startedAt
        guard let fault else { return nil }
        // What the app wanted out must not stay in for a mistake of its own: only what identifies the stall is kept.
        self = original
        metadata = [:]
        loop.thread?.name = nil
        process = ProcessDescription(
            name: "", pid: original.process.pid, startedAt: original.process.startedAt,
            startTicks: original.process.startTicks, executable: "", architecture: original.process.architecture,
            operatingSystem: nil, kernel: "", hostname: "", bootID: original.process.bootID
        )
        culprit = nil
        samples = []
        otherThreads = nil
        stacks = []
        frames = []
        images = []
        return fault
    }
}
