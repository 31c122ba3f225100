extension StallReport {
    package mutating func shortenPaths(_ style: PathStyle) {
        guard style == .fileNames else { return }
        let whole = self
        process.executable = process.name
        for index in images.indices {
            images[index].path = images[index].name
            // The reason may contain full paths.
            images[index].reason = nil
        }
        for index in frames.indices { frames[index].file = frames[index].file.map(Self.fileName) }
        if let file = culprit?.file { culprit?.file = Self.fileName(file) }
        for index in (waits ?? []).indices {
            if let file = waits?[index].file { waits?[index].file = Self.fileName(file) }
        }
        var targets: [String] = []
        replaceTargets { target in
            targets.append(target)
            return Self.withoutDirectories(target)
        }
        guard !nameCause(since: whole), var summary = cause?.summary else { return }
        // Longest first: one target may be a prefix of another.
        for target in targets.sorted(by: { $0.utf8.count > $1.utf8.count }) where target.contains("/") {
            summary = summary.replacing(
                target.withoutControls, with: Self.withoutDirectories(target).withoutControls)
        }
        cause?.summary = summary
    }

    /// Removes the directories from a call's target, which may list descriptors; too much where a path has commas.
    private static func withoutDirectories(_ target: String) -> String {
        target.split(separator: ", ", omittingEmptySubsequences: false).map { piece in
            guard piece.contains("/") else { return String(piece) }
            let prefix = ["socket to ", "socket at "].first { piece.hasPrefix($0) } ?? ""
            return prefix + fileName(String(piece.dropFirst(prefix.count)))
        }.joined(separator: ", ")
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
            // The cause's sentence names functions, targets and labels: those that are left.
            if !nameCause(since: original), cause?.summary == original.cause?.summary, differs(from: original) {
                cause?.summary = Self.redactedCause
            }
            return nil
        }
        // A mistake in the closure must not expose what it was meant to remove.
        self = original
        removeAllButTimes()
        return fault
    }

    /// Stands for a sentence that cannot be written anew from the report's other fields.
    private static let redactedCause = "Why it took so long is left out: the report was redacted."

    /// Whether anything is not the same that the cause's sentence may name.
    private func differs(from original: StallReport) -> Bool {
        var other = original
        (other.metadata, other.process) = (metadata, process)
        return self != other
    }

    /// Keeps only what identifies the stall.
    package mutating func removeAllButTimes() {
        let original = self
        metadata = [:]
        loop.thread?.name = nil
        loop.thread?.context = nil
        (process.name, process.executable, process.kernel, process.hostname) = ("", "", "", "")
        process.operatingSystem = nil
        culprit = nil
        missingCulpritReason = nil
        context = nil
        pool?.actor = nil
        replaceTargets { _ in nil }
        replaceLockLabels { _ in nil }
        // Peers have the names of processes and threads.
        changeWaits(call: { ($0.peers, $0.omittedPeers, $0.missingPeersReason) = (nil, nil, nil) })
        for index in (cause?.lock?.owners ?? []).indices {
            cause?.lock?.owners[index].thread.name = nil
            cause?.lock?.owners[index].thread.context = nil
        }
        removeObservations()
        if !nameCause(since: original) { cause?.summary = Self.redactedCause }
    }

    /// Removes the list of Swift tasks, whose actors and executors have the names of their classes.
    ///
    /// Of an overdue operation, it removes the executors for which it waits.
    public mutating func removeTasks() {
        tasks = nil
        for index in (waits ?? []).indices { waits?[index].executor = nil }
    }

    /// Replaces what system calls act on: paths, addresses of sockets, descriptors, times.
    ///
    /// The calls are those of the stalled thread, of the owners of locks, of the other threads, and of the processes that a
    /// call waits for. A file that is paged in and a descriptor that is always readable are targets, too.
    /// ``Cause/summary`` names targets; in the configuration's `redact` it is written anew, or left out.
    ///
    /// - Parameter replacement: Returns the text to put in a target's place; `nil` removes it.
    public mutating func replaceTargets(with replacement: (_ target: String) -> String?) {
        let (paged, ready) = (cause?.pagedFile, activity?.readyDescriptor)
        cause?.pagedFile = paged.flatMap(replacement)
        activity?.readyDescriptor = ready.flatMap(replacement)
        changeWaits { call in
            call.target = call.target.flatMap(replacement)
            call.peers = call.peers?.map { peer in
                var peer = peer
                peer.target = peer.target.flatMap(replacement)
                return peer
            }
        }
    }

    /// Replaces the labels of locks: of dispatch queues, and of stdio streams.
    ///
    /// The locks are those for which the stalled thread, the owners of locks and the other threads wait.
    /// ``Cause/summary`` names labels; in the configuration's `redact` it is written anew, or left out.
    ///
    /// - Parameter replacement: Returns the text to put in a label's place; `nil` removes it.
    public mutating func replaceLockLabels(with replacement: (_ label: String) -> String?) {
        changeWaits(lock: { lock in
            lock.label = lock.label.flatMap(replacement)
            for index in lock.owners.indices {
                lock.owners[index].waitsForLabel = lock.owners[index].waitsForLabel.flatMap(replacement)
                let queue = lock.owners[index].priorityInversion?.queue
                lock.owners[index].priorityInversion?.queue = queue.flatMap(replacement)
            }
        })
    }

    private mutating func changeWaits(
        call: (inout SystemCall) -> Void = { _ in }, lock: (inout Lock) -> Void = { _ in }
    ) {
        func changed(_ wait: SystemCall?) -> SystemCall? {
            guard var wait else { return nil }
            call(&wait)
            return wait
        }
        func changed(_ wait: Lock?) -> Lock? {
            guard var wait else { return nil }
            lock(&wait)
            for index in wait.owners.indices { wait.owners[index].systemCall = changed(wait.owners[index].systemCall) }
            return wait
        }
        if var cause {
            (cause.systemCall, cause.lock) = (changed(cause.systemCall), changed(cause.lock))
            cause.otherCall = changed(cause.otherCall)
            self.cause = cause
        }
        otherThreads = otherThreads?.map { thread in
            var thread = thread
            (thread.systemCall, thread.lock) = (changed(thread.systemCall), changed(thread.lock))
            return thread
        }
    }

    /// Removes the stacks and what the loops and the other threads did, which is most of a report.
    package mutating func removeObservations() {
        samples = []
        otherThreads = nil
        waits = nil
        tasks = nil
        history = nil
        victims = nil
        for index in (cause?.lock?.owners ?? []).indices { cause?.lock?.owners[index].stack = nil }
        stacks = []
        frames = []
        images = []
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
