import LinuxSupport
import StackCapture
import StallReports

extension StallReport.Cause {
    /// Creates a report's cause.
    ///
    /// - Parameters:
    ///   - cause: The diagnosed cause.
    ///   - stack: Adds a stack to the report's tables and returns its index.
    init(_ cause: Cause, stack: (CapturedStack, ImageList) -> Int) {
        let evidence = cause.evidence
        let observation = cause.observation
        self.init(
            kind: .init(rawValue: cause.kind.rawValue),
            summary: "",
            confidence: .init(rawValue: cause.confidence.rawValue),
            onCPUMilliseconds: milliseconds(evidence.split.onCPU),
            runQueueMilliseconds: milliseconds(evidence.split.runQueue),
            blockedMilliseconds: milliseconds(evidence.split.blocked),
            uncertaintyMilliseconds: milliseconds(evidence.split.uncertainty),
            kernelShare: evidence.kernelShare.map { ($0 * 1_000).rounded() / 1_000 },
            minorFaults: evidence.minorFaults,
            majorFaults: evidence.majorFaults,
            voluntarySwitches: evidence.voluntarySwitches,
            involuntarySwitches: evidence.involuntarySwitches,
            throttledMilliseconds: evidence.throttled == 0 ? nil : milliseconds(evidence.throttled),
            pagedFile: evidence.pagedFile,
            systemCall: (observation?.call).map(StallReport.SystemCall.init),
            function: observation?.function,
            waitChannel: observation?.waitChannel,
            kernelStack: observation?.kernelStack,
            lock: (observation?.lock).map { wait in StallReport.Lock(wait) { stack($0, wait.images) } },
            pressure: cause.pressure.map {
                StallReport.Pressure(cpuSomeAvg10: $0.cpu, ioSomeAvg10: $0.io, memorySomeAvg10: $0.memory)
            }
        )
        summary = sentence
    }
}

extension StallReport.SystemCall {
    init(_ call: DescribedCall) {
        self.init(number: call.number, name: call.name, target: call.target)
    }
}

extension StallReport.Lock {
    /// Returns the lock that another thread waits for; `nil` if it waits for none.
    ///
    /// - Parameters:
    ///   - wait: The wait.
    ///   - record: The record that has the wait, and the owner among its threads.
    /// - Returns: The lock.
    static func awaited(in wait: ThreadWait, of record: StallRecord) -> StallReport.Lock? {
        guard let lock = wait.lock else { return nil }
        var ownership = LockOwnership(site: lock, isDeadlock: wait.isDeadlock)
        if case .thread(let id) = lock.ownership { ownership.owners = [owner(id, in: record)] }
        return StallReport.Lock(ownership) { _ in 0 }
    }

    /// Returns a thread of the record as the owner of a lock, without a stack.
    private static func owner(_ id: Int32, in record: StallRecord) -> LockOwnership.Owner {
        let captured = record.otherThreads.first { $0.thread.id == id }
        var thread = captured?.thread ?? ThreadIdentity(id: id, name: nil)
        if let ofLoop = record.loop.thread, ofLoop.id == id { thread = ofLoop }
        var isRunning = false
        if case .success(let stack)? = captured?.stack { isRunning = stack.threadState == .running }
        return LockOwnership.Owner(
            thread: thread, stack: .failure(CaptureError(description: "")), isRunning: isRunning)
    }

    /// Creates a report's lock.
    ///
    /// - Parameters:
    ///   - wait: The awaited lock and its owners.
    ///   - stack: Adds a stack to the report's tables and returns its index.
    init(_ wait: LockOwnership, stack: (CapturedStack) -> Int) {
        var reason: String?
        switch wait.site.ownership {
        case .thread: break
        case .none: reason = "this kind has no owner"
        case .unknown(let why): reason = why
        }
        self.init(
            kind: .init(rawValue: wait.site.kind.rawValue),
            address: wait.site.address == 0 ? nil : "0x" + hexadecimal(wait.site.address),
            function: wait.site.function,
            label: wait.site.label,
            isDeadlock: wait.isDeadlock,
            owners: wait.owners.map { owner in
                StallReport.LockOwner(
                    thread: .init(owner.thread),
                    stack: (try? owner.stack.get()).map(stack),
                    isRunning: owner.isRunning,
                    systemCall: owner.systemCall.map(StallReport.SystemCall.init),
                    waitsFor: (owner.waitsFor?.kind).map { StallReport.LockKind(rawValue: $0.rawValue) },
                    waitsForAddress: (owner.waitsFor?.address).map { "0x" + hexadecimal($0) },
                    waitsForLabel: owner.waitsFor?.label
                )
            },
            reason: reason
        )
    }
}
