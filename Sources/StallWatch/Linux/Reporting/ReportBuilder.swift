import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

/// Builds reports from raw records: symbolicates addresses and stores each stack, frame and image once.
struct ReportBuilder {
    let process: StallReport.ProcessDescription
    let metadata: [String: String]
    let inApp: InAppSettings
    let symbolication: ReportSymbolication
    /// Why the contexts of threads are not known in this process; `nil` if they are.
    var missingContextReason: String?

    /// Adds the names to a draft; `whenLate` receives it half done if symbolication exceeds its time limit.
    func report(
        of record: StallRecord, draft: StallReport? = nil, whenLate: (StallReport) -> Void = { _ in }
    ) -> StallReport {
        let symbolicator = symbolication.symbolicator
        // Only names tell which threads are the workers of a pool.
        let isOfPool = record.samples.contains { !$0.workers.isEmpty }
        let symbol = { WorkerGroups.symbol(of: $0, in: $1, symbolicator) }
        let draft = isOfPool ? self.draft(of: record, symbol: symbol) : draft ?? self.draft(of: record)
        var report = symbolication.symbolicate(draft, whenLate: whenLate)
        if record.kind == .starvation, record.loop.kind != .taskExecutor {
            report.cause = StarvationCause(record, report).cause
        }
        // Here, because the names are known now.
        var tasks = report.tasks
        tasks?.markSleeps(report)
        report.tasks = tasks
        if let operation = record.operation { OverdueCause(operation, record.otherThreads).explain(&report) }
        return report
    }

    /// Builds the report without names and lines, to be written at once; `symbol` returns a frame's mangled name, to
    /// tell a pool's workers (without names every thread counts as one).
    func draft(
        of record: StallRecord, symbol: ((CapturedFrame, ImageList) -> String?)? = nil
    ) -> StallReport {
        var tables = ReportTables(inApp: inApp)
        let samples = zip(record.samples, record.samples.weights(duration: record.duration)).map { sample, weight in
            let workers = WorkerGroups.group(
                sample, &tables, of: record.loop.kind, named: record.poolWorkers, symbol: symbol)
            let own = (try? sample.stack.get()).map { tables.stack($0, in: sample.images) }
            return describe(sample, weight: weight, stack: own ?? workers?.first?.stack, workers: workers)
        }
        let otherThreads = record.otherThreads.map { other in
            let captured = try? other.stack.get()
            var thread = StallReport.OtherThread(thread: .init(other.thread, captured))
            thread.stack = captured.map { tables.stack($0, in: record.otherImages) }
            thread.reason = other.stack.reason
            thread.threadState = captured?.threadState
            thread.method = captured?.method
            thread.heldMicroseconds = Double(captured?.heldNanoseconds ?? 0) / 1_000
            thread.systemCall = other.wait?.call
            thread.lock = other.wait.flatMap { StallReport.Lock.awaited(in: $0, of: record) }
            return thread
        }
        let waits = record.operation?.waits(record.otherThreads, record.otherImages) { tables.stack($0, in: $1) }
        let tasks = record.tasks?.list { tables.stack($0, in: record.samples.last?.images ?? ImageList()) }
        let cause = record.cause.map { cause in StallReport.Cause(cause) { tables.stack($0, in: $1) } }
        var report = StallReport(
            id: record.id,
            kind: record.kind,
            state: record.state,
            startedAt: record.startedAt,
            durationMilliseconds: milliseconds(record.duration),
            thresholdMilliseconds: milliseconds(record.threshold),
            process: process,
            metadata: metadata,
            loop: record.loop,
            samples: samples,
            stacks: tables.stacks,
            frames: tables.frames,
            images: tables.images,
            monitor: StallReport.MonitorDescription(
                watchdogLateMilliseconds: milliseconds(record.watchdogLate),
                captureMethods: record.captureMethods,
                unwinder: record.unwinder?.name,
                suppressed: record.suppressed
            )
        )
        report.startUncertaintyMilliseconds = record.startUncertainty.map(milliseconds)
        report.missingSamplesReason = record.missedReason
        report.turns = record.turns
        report.activity = record.activity
        report.pool = record.pool
        report.callout = record.isGap ? .outside : nil
        report.cause = cause
        report.otherThreads = otherThreads.isEmpty ? nil : otherThreads
        report.omittedThreads = record.omittedThreads == 0 ? nil : record.omittedThreads
        report.waits = waits
        report.history = record.leadUp.map { StallReport.History($0, duration: record.duration) }
        report.tasks = tasks
        report.victims = record.victims
        report.sortWorkers()
        report.addContext(of: record, missing: missingContextReason)
        return report
    }

    private static func areComplete(_ workers: [StallRecord.OtherThread]) -> Bool {
        !workers.isEmpty && workers.allSatisfy { (try? $0.stack.get())?.isWhole ?? false }
    }

    private func describe(
        _ sample: StallRecord.Sample, weight: UInt64, stack: Int?, workers: [StallReport.WorkerGroup]?
    ) -> StallReport.Sample {
        let captured = try? sample.stack.get()
        var described = StallReport.Sample(
            atMilliseconds: milliseconds(sample.age), isValid: sample.isValid,
            isComplete: captured?.isWhole ?? Self.areComplete(sample.workers))
        described.weightMilliseconds = milliseconds(weight)
        described.timesSeen = sample.timesSeen == 1 ? nil : sample.timesSeen
        described.isEarly = sample.isEarly ? true : nil
        described.stack = stack
        described.reason = sample.stack.reason
        described.threadState = captured?.threadState
        described.method = captured?.method
        described.workers = workers
        described.heldMicroseconds = Double(captured?.heldNanoseconds ?? 0) / 1_000
        described.captureMicroseconds = Double(captured?.captureNanoseconds ?? 0) / 1_000
        return described
    }
}

extension Result<CapturedStack, CaptureFailure> {
    /// The reason why the stack is missing or incomplete; `nil` if it is complete.
    var reason: String? {
        switch self {
        case .success(let stack): stack.incompleteReason ?? stack.missingAsyncCallersReason
        case .failure(let error): error.description
        }
    }
}

extension StallReport.FrameKind {
    fileprivate init(_ kind: CapturedFrameKind) {
        switch kind {
        case .code: self = .code
        case .asyncCaller, .taskStart: self = .asyncCaller
        case .signal: self = .signal
        }
    }
}

struct ReportTables {
    var stacks: [[Int]] = []
    var frames: [StallReport.Frame] = []
    var images: [StallReport.Image] = []
    private(set) var stackIndices: [[Int]: Int] = [:]
    private(set) var frameIndices: [StallReport.Frame: Int] = [:]
    private(set) var imageIndices: [StallReport.Image: Int] = [:]
    let inApp: InAppSettings
    var callouts = CalloutNames.learned

    mutating func stack(_ stack: CapturedStack, in list: ImageList) -> Int {
        let rule = InAppRule(inApp, imagePaths: list.images.lazy.map(\.path))
        let indices = stack.frames.indices.map { index in
            let frame = stack.frames[index]
            let address = frame.lookupAddress
            guard let image = list.image(at: address) else {
                let frame = StallReport.Frame(
                    image: nil, offset: .init(address), isInApp: false, kind: .code)
                return Self.index(of: frame, in: &frames, &frameIndices)
            }
            let isInApp = rule.isInApp(imageAt: image.path, isExecutable: image.isExecutable)
            let callout = index == 0 ? nil : callouts.name(of: frame, calling: stack.frames[index - 1])
            let entry = StallReport.Image(
                name: image.name, path: image.path, buildID: image.buildIDText, contentHash: image.contentHashText,
                baseAddress: .init(image.base), isInApp: isInApp)
            var described = StallReport.Frame(
                image: Self.index(of: entry, in: &images, &imageIndices),
                offset: .init(address &- image.base), function: callout, symbol: callout,
                isInApp: isInApp && callout == nil, kind: .init(frame.kind))
            if callout != nil { described.isRuntimeFrame = true }
            if frame.isUncertain { described.isUncertain = true }
            if frame.kind == .taskStart { described.isTaskStart = true }
            return Self.index(of: described, in: &frames, &frameIndices)
        }
        return Self.index(of: indices, in: &stacks, &stackIndices)
    }

    private static func index<Element>(
        of element: Element, in all: inout [Element], _ indices: inout [Element: Int]
    ) -> Int {
        if let known = indices[element] { return known }
        all.append(element)
        indices[element] = all.count - 1
        return all.count - 1
    }
}

enum WorkerGroups {
    /// Groups a sample's workers by the mangled names that `symbol` returns; `nil` if its loop has its own thread.
    ///
    /// Without names, or with unnamed functions if no thread is known to be one, every thread counts as a worker. In the
    /// pool of tasks, only those that run one do (``StallReport/ofTaskPool(_:symbols:)``). Of a thread pool all threads are known.
    /// The workers of another of libdispatch's queues than that of `name` do not count.
    static func group(
        _ sample: StallRecord.Sample, _ tables: inout ReportTables, of kind: LoopKind = .globalQueue,
        named name: String? = nil, symbol: ((CapturedFrame, ImageList) -> String?)?
    ) -> [StallReport.WorkerGroup]? {
        guard !sample.workers.isEmpty else { return nil }
        let threads = sample.workers.compactMap { worker in
            (try? worker.stack.get()).map { stack in
                (
                    thread: worker.thread, stack: stack,
                    symbols: symbol.map { symbol in stack.frames.map { symbol($0, sample.images) } } ?? [nil]
                )
            }
        }
        var workers = threads.filter { thread in
            kind == .threadPool || thread.symbols.contains { $0.map(StallReport.workerFunctions.contains) ?? false }
        }
        if let name {
            let others = StallReport.ThreadDescription.workers.subtracting([name])
            workers.removeAll { $0.thread.name.map(others.contains) ?? false }
        }
        if kind == .cooperativePool { workers = StallReport.ofTaskPool(workers, symbols: \.symbols) }
        let possible = workers.isEmpty ? threads.filter { $0.symbols.contains(nil) } : workers
        var groups: [StallReport.WorkerGroup] = []
        for worker in possible {
            let stack = tables.stack(worker.stack, in: sample.images)
            if let known = groups.firstIndex(where: { $0.stack == stack }) {
                groups[known].threads.append(.init(worker.thread, worker.stack))
            } else {
                groups.append(StallReport.WorkerGroup(stack: stack, threads: [.init(worker.thread, worker.stack)]))
            }
        }
        return groups
    }

    static func symbol(
        of frame: CapturedFrame, in images: ImageList, _ symbolicator: any Symbolicating
    ) -> String? {
        guard let image = images.image(at: frame.lookupAddress) else { return nil }
        return symbolicator.symbol(at: frame.lookupAddress &- image.base, in: ImageIdentity(image))
    }
}

extension LoadedImage {
    /// The build ID in lower-case hexadecimal, the form that reports use; `nil` if the file has none.
    var buildIDText: String? { buildID.isEmpty ? nil : hexadecimal(buildID) }

    var contentHashText: String? { contentHash.map { hexadecimal($0, width: 16) } }
}

extension ImageIdentity {
    init(_ image: LoadedImage) {
        self.init(
            path: image.path, buildID: image.buildIDText, contentHash: image.contentHashText,
            isOwnExecutable: image.isExecutable)
    }
}
