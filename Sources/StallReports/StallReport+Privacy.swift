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
    package mutating func shortenPaths(_ style: PathStyle) {
        guard style == .fileNames else { return }
        process.executable = process.name
        for index in images.indices {
            images[index].path = images[index].name
            // It names files in directories.
            images[index].reason = nil
        }
        for index in frames.indices { frames[index].file = frames[index].file.map(Self.fileName) }
        if let file = culprit?.file { culprit?.file = Self.fileName(file) }
        cause?.shortenPaths()
    }

    fileprivate static func fileName(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    /// Lets the app change the report.
    ///
    /// What other parts go by stays: id, state, times, and indices that lead somewhere.
    ///
    /// - Returns: What the app has broken; the report is then without its stacks.
    package mutating func redact(with body: @Sendable (inout StallReport) -> Void) -> String? {
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
        missingCulpritReason = nil
        samples = []
        otherThreads = nil
        stacks = []
        frames = []
        images = []
        return fault
    }
}

extension StallReport.Cause {
    /// Leaves the file names only of what system calls were on, there and in the summary, which says it again.
    fileprivate mutating func shortenPaths() {
        var targets: [String] = []
        func shorten(_ target: inout String?) {
            guard let whole = target, whole.contains("/") else { return }
            targets.append(whole)
            target = Self.withoutDirectories(whole)
        }
        shorten(&systemCall.targetOrNone)
        shorten(&pagedFile)
        if var owners = lock?.owners {
            for index in owners.indices { shorten(&owners[index].systemCall.targetOrNone) }
            lock?.owners = owners
        }
        // Longest first: one may be the beginning of another.
        for target in targets.sorted(by: { $0.utf8.count > $1.utf8.count }) {
            summary = summary.replacing(target, with: Self.withoutDirectories(target))
        }
    }

    /// A system call's target, which may be several descriptors and say more of each than its path.
    ///
    /// In doubt too much is left out: a path may itself have commas in it.
    private static func withoutDirectories(_ target: String) -> String {
        target.split(separator: ", ", omittingEmptySubsequences: false).map { piece in
            guard piece.contains("/") else { return String(piece) }
            let prefix = ["socket to ", "socket at "].first { piece.hasPrefix($0) } ?? ""
            return prefix + StallReport.fileName(String(piece.dropFirst(prefix.count)))
        }.joined(separator: ", ")
    }
}

extension StallReport.SystemCall? {
    /// The target of a call; `nil`, and nothing to set, when there is no call.
    fileprivate var targetOrNone: String? {
        get { self?.target }
        set { self?.target = newValue }
    }
}
