import StackCapture
import StallSymbols
import StallReports
import LinuxSupport

/// Makes a report of a stall's raw facts: names addresses, and stores stacks, frames and images once each.
struct ReportBuilder {
    let process: StallReport.ProcessDescription
    let metadata: [String: String]
    let inApp: InAppSettings
    let symbolication: ReportSymbolication

    /// The report with names and lines.
    ///
    /// - Parameters:
    ///   - record: The raw facts.
    ///   - whenLate: Takes the report as far as it has come, if names and lines take longer than the time limit.
    func report(of record: StallRecord, whenLate: (StallReport) -> Void = { _ in }) -> StallReport {
        let symbolicator = symbolication.symbolicator
        var report = symbolication.symbolicate(
            rawReport(of: record) { WorkerGroups.symbol(of: $0, in: $1, symbolicator) }, whenLate: whenLate
        )
        if record.kind == .starvation { report.cause = StarvationCause(record, report).cause }
        return report
    }

    /// The report without any name, which can be written at once.
    ///
    /// - Parameters:
    ///   - record: The raw facts.
    ///   - symbol: Gives a frame's mangled name, for what shows that a thread is a pool's worker. By default every thread
    ///     counts as one, because that cannot be told without names.
    func rawReport(
        of record: StallRecord, symbol: ((CapturedStack.Frame, ImageList) -> String?)? = nil
    ) -> StallReport {
        var tables = ReportTables(inApp: inApp)
        let samples = record.samples.map { sample in
            let workers = WorkerGroups.group(sample, &tables, symbol: symbol)
            let own = (try? sample.stack.get()).map { tables.stack($0, in: sample.images) }
            return describe(sample, stack: own ?? workers?.first?.stack, workers: workers)
        }
        let otherThreads = record.otherThreads.map { other in
            let captured = try? other.stack.get()
            return StallReport.OtherThread(
                thread: .init(other.thread),
                stack: captured.map { tables.stack($0, in: record.otherImages) },
                reason: other.stack.reason,
                threadState: captured.map { StallReport.ThreadState(rawValue: $0.threadState.rawValue) },
                method: captured.map { StallReport.CaptureMethod(rawValue: $0.method.rawValue) },
                heldMicroseconds: Double(captured?.heldNanoseconds ?? 0) / 1_000
            )
        }
        return StallReport(
            schemaVersion: StallReport.currentSchemaVersion,
            id: record.id,
            kind: .init(rawValue: record.kind.rawValue),
            state: .init(rawValue: record.state.rawValue),
            startedAt: record.startedAt,
            durationMilliseconds: milliseconds(record.duration),
            thresholdMilliseconds: milliseconds(record.threshold),
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
    }

    /// Whether a pool's sample has a complete stack of every worker.
    private static func areComplete(_ workers: [StallRecord.OtherThread]) -> Bool {
        !workers.isEmpty && workers.allSatisfy { (try? $0.stack.get())?.isComplete ?? false }
    }

    private func describe(
        _ sample: StallRecord.Sample, stack: Int?, workers: [StallReport.WorkerGroup]?
    ) -> StallReport.Sample {
        let captured = try? sample.stack.get()
        return StallReport.Sample(
            atMilliseconds: milliseconds(sample.age),
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
    /// Why there is no stack, or why it is not complete; `nil` when it is.
    fileprivate var reason: String? {
        switch self {
        case .success(let stack): stack.incompleteReason ?? stack.missingAsyncCallersReason
        case .failure(let error): error.description
        }
    }
}

/// Nanoseconds as milliseconds, rounded to the microsecond.
func milliseconds(_ nanoseconds: UInt64) -> Double {
    // Without a sum of nanoseconds, which could overflow.
    let (microseconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000)
    return Double(rest < 500 ? microseconds : microseconds + 1) / 1_000
}
