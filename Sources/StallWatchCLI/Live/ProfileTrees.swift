import StallReports
import TextOutput

/// A profile of a live process, as a call tree for each thread.
struct ProfileTrees {
    let profile: ProfileAnswer
    let minimumPercent: Double
    let trees: [CallTree]

    init(
        _ profile: ProfileAnswer, _ direction: CallTree.Direction, leavesOutRuntimeFrames: Bool, minimumPercent: Double
    ) {
        self.profile = profile
        self.minimumPercent = minimumPercent
        trees = profile.threads.map { thread in
            var tree = CallTree(direction, leavesOutRuntimeFrames: leavesOutRuntimeFrames)
            tree.add(profile: thread.report)
            return tree.finished()
        }
    }

    func text(for terminal: Terminal) -> String {
        let process = profile.threads.first?.report.process
        var text = terminal.style("\((process?.name ?? "").printable) (\(process?.pid ?? 0))", .bold)
        text +=
            ": \(profile.durationMilliseconds.duration), \(counted(profile.passes, "sample", "samples")) of each loop\n"
        for (thread, tree) in zip(profile.threads, trees) where !Self.isIdleWorker(thread.report) {
            let shown = CallTreeText(tree, minimumPercent: minimumPercent)
            text += "\n" + terminal.style(Self.title(thread.report), .bold) + "\n"
            text += Self.times(thread).wrapped(to: terminal.width) + "\n\n"
            text += shown.lines.map { $0.text(of: tree.microseconds, for: terminal) }.joined()
            if shown.omittedMicroseconds > 0 {
                let omitted = (Double(shown.omittedMicroseconds) / 1_000).duration
                text += "Stacks of \(omitted) are below the minimum of \(minimumPercent.fixed(1)) %.\n"
            }
            if thread.skippedSamples > 0 {
                let skipped = counted(thread.skippedSamples, "sample was", "samples were")
                text += "\(skipped) not taken, so that the thread is stopped for at most 0.5 % of the time.\n"
            }
            for missing in Self.missingStacks(thread.report) {
                text += missing.sentence.wrapped(to: terminal.width) + "\n"
            }
        }
        let notes = notes.map { $0.wrapped(to: terminal.width) + "\n" }
        return notes.isEmpty ? text : text + "\n" + notes.joined()
    }

    /// "main (thread 4700)".
    static func title(_ report: StallReport) -> String {
        guard let thread = report.loop.thread else { return report.loop.label.printable }
        let name = thread.name.map { " \"\($0.printable)\"" } ?? ""
        return "\(report.loop.label.printable) (thread \(thread.id)\(name))"
    }

    static func times(_ thread: ProfileAnswer.Thread) -> String {
        let states: [StallReport.ThreadState] = [.running, .blocked, .idle]
        let times = states.map { (state: $0.rawValue, milliseconds: milliseconds($0, of: thread)) }
        let all = max(times.reduce(0) { $0 + $1.milliseconds }, .leastNonzeroMagnitude)
        var text = times.filter { $0.milliseconds > 0 }
            .map { state, milliseconds in "\(state) \((milliseconds / all * 100).fixed(1)) %" }.joined(separator: ", ")
        if let onCPU = thread.onCPUMilliseconds {
            text += "; by the kernel's clock \(onCPU.duration) on a CPU"
            if let waited = thread.runQueueMilliseconds { text += ", \(waited.duration) ready without one" }
        }
        return text
    }

    static func milliseconds(_ state: StallReport.ThreadState, of thread: ProfileAnswer.Thread) -> Double {
        let samples = thread.report.samples.filter { $0.threadState == state }
        return samples.reduce(0) { $0 + ($1.weightMilliseconds ?? 0) }
    }

    /// Whether a pool's thread had no work all the time.
    private static func isIdleWorker(_ report: StallReport) -> Bool {
        let isPool = report.loop.kind == .cooperativePool || report.loop.kind == .globalQueue
        return isPool && report.samples.allSatisfy { $0.threadState == .idle }
    }

    /// A reason for which samples have no stack or an incomplete one.
    struct MissingStacks: Encodable, Equatable {
        let reason: String
        let samples: Int

        var sentence: String {
            "\(counted(samples, "sample has", "samples have")) no whole stack: \(reason.printable)."
        }
    }

    /// The reasons, the most frequent first.
    static func missingStacks(_ report: StallReport) -> [MissingStacks] {
        var counts: [String: Int] = [:]
        for sample in report.samples where sample.stack == nil || !sample.isComplete {
            if let reason = sample.reason { counts[reason, default: 0] &+= sample.timesSeen ?? 1 }
        }
        return counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(MissingStacks.init)
    }

    var notes: [String] {
        var notes: [String] = []
        let idle = profile.threads.filter { Self.isIdleWorker($0.report) }
        for (label, count) in Dictionary(grouping: idle, by: \.report.loop.label).mapValues(\.count).sorted(by: <) {
            notes.append("\(label.printable): \(counted(count, "thread", "threads")) had no work all the time.")
        }
        let lacks = [
            (profile.missedPasses, "sample was", "samples were", "taken, because the monitor was late"),
            (profile.omittedThreads, "thread was", "threads were", "sampled, because the process has too many"),
            (profile.unkeptStacks, "stack was", "stacks were", "kept, because there were too many different ones"),
        ]
        for (count, one, many, reason) in lacks where count > 0 {
            notes.append("\(counted(count, one, many)) not \(reason).")
        }
        return notes
    }
}
