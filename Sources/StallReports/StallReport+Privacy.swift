extension StallReport {
    package mutating func shortenPaths(_ style: PathStyle) {
        guard style == .fileNames else { return }
        process.executable = process.name
        for index in images.indices {
            images[index].path = images[index].name
            // The reason may contain full paths.
            images[index].reason = nil
        }
        for index in frames.indices { frames[index].file = frames[index].file.map(Self.fileName) }
        if let file = culprit?.file { culprit?.file = Self.fileName(file) }
        cause?.shortenPaths()
        if let ready = activity?.readyDescriptor { activity?.readyDescriptor = Cause.withoutDirectories(ready) }
        for index in (waits ?? []).indices {
            if let file = waits?[index].file { waits?[index].file = Self.fileName(file) }
        }
        for index in (otherThreads ?? []).indices {
            guard let target = otherThreads?[index].systemCall?.target else { continue }
            otherThreads?[index].systemCall?.target = Cause.withoutDirectories(target)
        }
    }

    static func fileName(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    /// Applies the app's redaction.
    ///
    /// Restores schema version, id, kind, state and start time afterwards, because other components depend on them.
    /// Returns the fault, if the closure made the report invalid: the report then keeps only what identifies the stall.
    package mutating func redact(with body: @Sendable (inout StallReport) -> Void) -> String? {
        let original = self
        body(&self)
        schemaVersion = original.schemaVersion
        id = original.id
        kind = original.kind
        state = original.state
        startedAt = original.startedAt
        // The closure may remove stacks, but it cannot see the tasks that refer to them.
        if stacks.count < original.stacks.count || tasks?.fault(stacks: stacks.count) != nil { tasks = nil }
        guard let fault else {
            // The cause's sentence names functions: those that are left.
            nameCause(since: original)
            return nil
        }
        // A mistake in the closure must not expose what it was meant to remove: keep only what identifies the stall.
        self = original
        metadata = [:]
        loop.thread?.name = nil
        (process.name, process.executable, process.kernel, process.hostname) = ("", "", "", "")
        process.operatingSystem = nil
        culprit = nil
        missingCulpritReason = nil
        context = nil
        removeObservations()
        nameCause(since: original)
        return fault
    }

    /// The number of Swift tasks that the report lists; 0 if it lists none.
    ///
    /// Their functions are in ``stacks``; their actors and executors have the names of their classes.
    package var taskCount: Int { tasks?.tasks.reduce(0) { $0 + ($1.count ?? 1) } ?? 0 }

    /// Removes the list of Swift tasks.
    public mutating func removeTasks() { tasks = nil }

    /// Removes the stacks and what the loops and the other threads did, which is most of a report.
    package mutating func removeObservations() {
        samples = []
        otherThreads = nil
        waits = nil
        tasks = nil
        history = nil
        stacks = []
        frames = []
        images = []
    }
}

extension StallReport.Cause {
    /// Shortens the paths in the targets of system calls, and their copies in the summary.
    fileprivate mutating func shortenPaths() {
        var targets: [String] = []
        func shortened(_ target: String?) -> String? {
            guard let target, target.contains("/") else { return target }
            targets.append(target)
            return Self.withoutDirectories(target)
        }
        func withShortTargets(_ call: StallReport.SystemCall) -> StallReport.SystemCall {
            var call = call
            call.target = shortened(call.target)
            call.peers = call.peers?.map { peer in
                var peer = peer
                peer.target = shortened(peer.target)
                return peer
            }
            return call
        }
        systemCall = systemCall.map(withShortTargets)
        pagedFile = shortened(pagedFile)
        let calls = lock?.owners.map { $0.systemCall.map(withShortTargets) } ?? []
        for (index, call) in calls.enumerated() { lock?.owners[index].systemCall = call }
        // Longest first: one target may be a prefix of another.
        for target in targets.sorted(by: { $0.utf8.count > $1.utf8.count }) {
            summary = summary.replacing(target, with: Self.withoutDirectories(target))
        }
    }

    /// Removes the directories from a system call's target, which may list several descriptors and describe each.
    ///
    /// If in doubt it removes too much: a path may itself contain commas.
    fileprivate static func withoutDirectories(_ target: String) -> String {
        target.split(separator: ", ", omittingEmptySubsequences: false).map { piece in
            guard piece.contains("/") else { return String(piece) }
            let prefix = ["socket to ", "socket at "].first { piece.hasPrefix($0) } ?? ""
            return prefix + StallReport.fileName(String(piece.dropFirst(prefix.count)))
        }.joined(separator: ", ")
    }
}

/// The form in which reports contain file paths.
public struct PathStyle: Sendable, Equatable {
    private enum Value { case full, fileNames }
    private let value: Value

    /// Full paths.
    public static let full = PathStyle(value: .full)
    /// File names without directories.
    ///
    /// Build IDs still identify the files.
    public static let fileNames = PathStyle(value: .fileNames)
}
