import StackCapture
import StallSymbols
import StallReports
import LinuxSupport

/// Builds reports from raw records: symbolicates addresses and stores each stack, frame and image once.
struct ReportBuilder {
    let process: StallReport.ProcessDescription
    let metadata: [String: String]
    let inApp: InAppSettings
    let symbolication: ReportSymbolication
    /// Why the contexts of threads are not known in this process; `nil` if they are.
    var missingContextReason: String?

    /// Builds the symbolicated report.
    ///
    /// - Parameters:
    ///   - record: The raw record.
    ///   - whenLate: Receives the partly symbolicated report if symbolication exceeds its time limit.
    /// - Returns: The report with function names and lines.
    func report(of record: StallRecord, whenLate: (StallReport) -> Void = { _ in }) -> StallReport {
        let symbolicator = symbolication.symbolicator
        var report = symbolication.symbolicate(
            rawReport(of: record) { WorkerGroups.symbol(of: $0, in: $1, symbolicator) }, whenLate: whenLate
        )
        if record.kind == .starvation { report.cause = StarvationCause(record, report).cause }
        return report
    }

    /// Builds the report without names, so that it can be written at once.
    ///
    /// - Parameters:
    ///   - record: The raw record.
    ///   - symbol: Returns a frame's mangled name, which shows whether a thread is a pool's worker. Without names every
    ///     thread counts as one.
    /// - Returns: The report without function names and lines.
    func rawReport(
        of record: StallRecord, symbol: ((CapturedStack.Frame, ImageList) -> String?)? = nil
    ) -> StallReport {
        var tables = ReportTables(inApp: inApp)
        let samples = zip(record.samples, record.samples.weights(duration: record.duration)).map { sample, weight in
            let workers = WorkerGroups.group(sample, &tables, symbol: symbol)
            let own = (try? sample.stack.get()).map { tables.stack($0, in: sample.images) }
            return describe(sample, weight: weight, stack: own ?? workers?.first?.stack, workers: workers)
        }
        let otherThreads = record.otherThreads.map { other in
            let captured = try? other.stack.get()
            return StallReport.OtherThread(
                thread: .init(other.thread, captured),
                stack: captured.map { tables.stack($0, in: record.otherImages) },
                reason: other.stack.reason,
                threadState: captured.map { StallReport.ThreadState(rawValue: $0.threadState.rawValue) },
                method: captured.map { StallReport.CaptureMethod(rawValue: $0.method.rawValue) },
                heldMicroseconds: Double(captured?.heldNanoseconds ?? 0) / 1_000,
                systemCall: (other.wait?.call).map(StallReport.SystemCall.init),
                lock: other.wait.flatMap { StallReport.Lock.awaited(in: $0, of: record) }
            )
        }
        var report = StallReport(
            schemaVersion: StallReport.currentSchemaVersion,
            id: record.id,
            kind: .init(rawValue: record.kind.rawValue),
            state: .init(rawValue: record.state.rawValue),
            startedAt: record.startedAt,
            durationMilliseconds: milliseconds(record.duration),
            thresholdMilliseconds: milliseconds(record.threshold),
            isThresholdAdaptive: record.isThresholdAdaptive ? true : nil,
            process: process,
            metadata: metadata,
            loop: .init(record.loop),
            startUncertaintyMilliseconds: record.startUncertainty.map(milliseconds),
            turns: record.turns,
            callout: record.isGap ? .outside : nil,
            fingerprint: nil,
            repeats: 0,
            culprit: nil,
            cause: record.cause.map { cause in StallReport.Cause(cause) { tables.stack($0, in: $1) } },
            samples: samples,
            otherThreads: otherThreads.isEmpty ? nil : otherThreads,
            omittedThreads: record.omittedThreads == 0 ? nil : record.omittedThreads,
            history: record.history.map { StallReport.History($0, duration: record.duration) },
            stacks: tables.stacks,
            frames: tables.frames,
            images: tables.images,
            monitor: StallReport.MonitorDescription(
                version: StallWatchVersion.current,
                watchdogLateMilliseconds: milliseconds(record.watchdogLate),
                captureMethods: record.captureMethods.map { StallReport.CaptureMethod(rawValue: $0.rawValue) },
                suppressed: record.suppressed
            )
        )
        report.sortWorkers()
        report.addContext(of: record, missing: missingContextReason)
        return report
    }

    /// Whether a pool's sample has a complete stack of every worker.
    private static func areComplete(_ workers: [StallRecord.OtherThread]) -> Bool {
        !workers.isEmpty && workers.allSatisfy { (try? $0.stack.get())?.isComplete ?? false }
    }

    private func describe(
        _ sample: StallRecord.Sample, weight: UInt64, stack: Int?, workers: [StallReport.WorkerGroup]?
    ) -> StallReport.Sample {
        let captured = try? sample.stack.get()
        return StallReport.Sample(
            atMilliseconds: milliseconds(sample.age),
            weightMilliseconds: milliseconds(weight),
            timesSeen: sample.timesSeen == 1 ? nil : sample.timesSeen,
            isEarly: sample.isEarly ? true : nil,
            stack: stack,
            reason: sample.stack.reason,
            threadState: captured.map { StallReport.ThreadState(rawValue: $0.threadState.rawValue) },
            method: captured.map { StallReport.CaptureMethod(rawValue: $0.method.rawValue) },
            workers: workers,
            isValid: sample.isValid,
            isComplete: captured?.isComplete ?? Self.areComplete(sample.workers),
            heldMicroseconds: Double(captured?.heldNanoseconds ?? 0) / 1_000,
            captureMicroseconds: Double(captured?.captureNanoseconds ?? 0) / 1_000
        )
    }
}

extension Result<CapturedStack, CaptureError> {
    /// The reason why the stack is missing or incomplete; `nil` if it is complete.
    fileprivate var reason: String? {
        switch self {
        case .success(let stack): stack.incompleteReason ?? stack.missingAsyncCallersReason
        case .failure(let error): error.description
        }
    }
}

/// Converts nanoseconds to milliseconds, rounded to the microsecond.
func milliseconds(_ nanoseconds: UInt64) -> Double {
    // Adding 500 ns before the division could overflow.
    let (microseconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000)
    return Double(rest < 500 ? microseconds : microseconds + 1) / 1_000
}
