import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

/// Makes the answer of a profile: looks up the names, and applies the app's rules about what may leave the process.
struct ProfileReports {
    let configuration: StallMonitor.Configuration
    let process = StallReport.ProcessDescription.current()
    /// The time for all names, in nanoseconds (10 s): what is not found by then has none.
    private static let timeForNames: UInt64 = 10_000_000_000

    func answer(of profiler: LoopProfiler) -> ProfileAnswer {
        let deadline = monotonicNow() &+ Self.timeForNames
        let symbolication = ReportSymbolication.inProcess(configuration.symbolication, inApp: configuration.inApp)
        var threads: [(answer: ProfileAnswer.Thread, isWorker: Bool?)] = []
        for track in profiler.tracks {
            var report = symbolication.symbolicate(report(of: track, in: profiler), until: deadline)
            if track.isOfPool { Self.markIdle(&report) }
            threads.append((thread(report, of: track), track.isOfPool ? Self.isWorker(report) : nil))
        }
        return ProfileAnswer(
            durationMilliseconds: milliseconds(profiler.duration), hertz: profiler.plan.hertz, passes: profiler.passes,
            missedPasses: profiler.clock.missed, omittedThreads: profiler.omittedThreads,
            unkeptStacks: profiler.limits.unkept, threads: Self.withoutOthers(threads)
        )
    }

    /// Leaves out the threads that were sampled for a pool and are none of its workers, if any is known to be one.
    private static func withoutOthers(
        _ threads: [(answer: ProfileAnswer.Thread, isWorker: Bool?)]
    ) -> [ProfileAnswer.Thread] {
        let labels = Set(threads.filter { $0.isWorker == true }.map(\.answer.report.loop.label))
        return threads.filter { $0.isWorker != false || !labels.contains($0.answer.report.loop.label) }.map(\.answer)
    }

    /// Marks the samples in which a pool's thread waited for work: none of its functions is the app's or a package's.
    private static func markIdle(_ report: inout StallReport) {
        let isBusy = report.stacks.map { stack in
            stack.contains { report.frames[$0].isInApp || report.frames[$0].isDependency == true }
        }
        for index in report.samples.indices where report.samples[index].threadState == .blocked {
            if let stack = report.samples[index].stack, !isBusy[stack] { report.samples[index].threadState = .idle }
        }
    }

    private static func isWorker(_ report: StallReport) -> Bool {
        report.frames.contains { $0.symbol.map(StallReport.workerFunctions.contains) ?? false }
    }

    private func thread(_ named: StallReport, of track: ProfileTrack) -> ProfileAnswer.Thread {
        var report = named
        // These describe a stall, and a profile is none.
        (report.culprit, report.missingCulpritReason, report.callout) = (nil, nil, nil)
        report.shortenPaths(configuration.pathStyle)
        if let redact = configuration.redact { _ = report.redact(with: redact) }
        return ProfileAnswer.Thread(
            report: report, onCPUMilliseconds: track.thread?.onCPU.map(milliseconds),
            runQueueMilliseconds: track.thread?.runQueue.map(milliseconds),
            heldMilliseconds: milliseconds(track.thread?.budget.held ?? 0), skippedSamples: track.skipped
        )
    }

    /// Returns the samples of a thread without names.
    private func report(of track: ProfileTrack, in profiler: LoopProfiler) -> StallReport {
        // Every pass stands for as much time, also if the profiler was late.
        let unit = Double(profiler.duration) / 1_000_000 / Double(max(profiler.passes, 1))
        let samples = track.runs.map { run in
            var sample = StallReport.Sample(
                atMilliseconds: milliseconds(run.at), isValid: true, isComplete: run.isComplete)
            sample.weightMilliseconds = run.passes * unit
            sample.timesSeen = run.count == 1 ? nil : run.count
            (sample.stack, sample.reason) = (run.stack, run.reason)
            sample.threadState = run.state
            sample.method = run.method.map { StallReport.CaptureMethod(rawValue: $0.rawValue) }
            return sample
        }
        return StallReport(
            id: ReportIdentifier.make(at: profiler.startedAt),
            kind: .profile, state: .ended, startedAt: profiler.startedAt,
            durationMilliseconds: Double(track.passes) * unit, thresholdMilliseconds: milliseconds(track.threshold),
            process: process, metadata: configuration.metadata,
            loop: .init(
                label: track.label, kind: track.kind, turn: 0, nesting: 0,
                thread: track.thread.map { StallReport.ThreadDescription($0.identity) }),
            samples: samples, stacks: track.tables.stacks, frames: track.tables.frames,
            images: track.tables.images,
            monitor: .init(
                watchdogLateMilliseconds: 0,
                captureMethods: profiler.capturer.methods.map { StallReport.CaptureMethod(rawValue: $0.rawValue) },
                unwinder: profiler.capturer.unwinder.name,
                suppressed: SuppressionCounts())
        )
    }
}
