import StackCapture
import StallSymbols
import StallReports
import LinuxSupport

/// Makes a report of a stall's raw facts: names addresses, and stores stacks, frames and images once each.
struct ReportBuilder {
    let process: StallReport.ProcessDescription
    let metadata: [String: String]
    let inApp: StallMonitor.InApp
    let symbolication: ReportSymbolication

    /// The report, with its names and lines.
    ///
    /// - Parameters:
    ///   - record: The raw facts.
    ///   - whenLate: Is given the report as far as it has come, if names and lines take longer than they may.
    ///   - meanwhile: Is called again and again while names and lines are looked up.
    func report(
        of record: StallRecord, whenLate: (StallReport) -> Void = { _ in }, meanwhile: () -> Void = {}
    ) -> StallReport {
        symbolication.symbolicate(unnamedReport(of: record), whenLate: whenLate, meanwhile: meanwhile)
    }

    /// The report without any function's name: what can be written at once.
    func unnamedReport(of record: StallRecord) -> StallReport {
        var tables = ReportTables(inApp: inApp)
        let samples = record.samples.map { sample in
            let workers = WorkerGroups.group(sample, &tables, symbolication.symbolicator)
            let own = (try? sample.stack.get()).map { tables.stack($0, in: sample.images) }
            return describe(sample, stack: own ?? workers?.first?.stack, workers: workers)
        }
        let otherThreads = record.otherThreads.map { other in
            let captured = try? other.stack.get()
            return StallReport.OtherThread(
                thread: other.thread,
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
            kind: record.kind,
            state: record.state,
            startedAt: record.startedAt,
            durationMilliseconds: milliseconds(record.duration),
            thresholdMilliseconds: milliseconds(record.threshold),
            process: process,
            metadata: metadata,
            loop: record.loop,
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
            isComplete: captured?.isComplete ?? false,
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
