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
    /// Creates the lock that another thread waits for; `nil` if it waits for none.
    ///
    /// - Parameters:
    ///   - wait: The wait.
    ///   - record: The record that has the wait, and the owner among its threads.
    init?(_ wait: ThreadWait, in record: StallRecord) {
        guard let lock = wait.lock else { return nil }
        let owner = lock.owner.map { id in
            let captured = record.otherThreads.first { $0.thread.id == id }
            let ofLoop = record.loop.thread.flatMap { $0.id == id ? $0 : nil }
            return LockOwnership.Owner(
                thread: captured?.thread ?? ofLoop ?? ThreadIdentity(id: id, name: nil),
                stack: .failure(CaptureError(description: "")),
                isRunning: (try? captured?.stack.get())?.threadState == .running
            )
        }
        let ownership = LockOwnership(site: lock, owners: owner.map { [$0] } ?? [], isDeadlock: wait.isDeadlock)
        self.init(ownership) { _ in 0 }
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
