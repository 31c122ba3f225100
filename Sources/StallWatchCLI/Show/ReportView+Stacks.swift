import StallReports
import TextOutput

extension ReportView {
    var stacks: String {
        let sampled = report.samples.filter { $0.isValid && $0.stack != nil }
        let distinct = Set(sampled.compactMap(\.stack))
        var text = ""
        if distinct.count > 1 {
            text += mergedStacks(sampled.count)
        } else if let stack = distinct.first {
            text += heading("Stack", sampled) + frames(of: stack)
        }
        return text + workers(without: distinct) + missingStacks
    }

    private func workers(without shown: Set<Int>) -> String {
        var shown = shown
        return report.samples.flatMap { $0.workers ?? [] }.compactMap { group in
            guard let stack = group.stack, shown.insert(stack).inserted else { return nil }
            let title = "Workers: \(counted(group.threads.count, "thread", "threads"))"
            return "\n" + terminal.style(title, .bold) + "\n" + frames(of: stack)
        }.joined()
    }

    private var missingStacks: String {
        var reasons = Numbered<String?>()
        var times: [[Double]] = []
        for sample in report.samples where !(sample.isValid && sample.stack != nil) && sample.workers == nil {
            let reason = sample.stack == nil ? sample.reason : "the turn had ended before it was captured"
            let number = reasons.number(of: reason)
            if number == times.count { times.append([]) }
            times[number].append(sample.atMilliseconds)
        }
        return zip(reasons.values, times).map { reason, times in
            paragraph("No stack at \(list(times))\(reason.map { ": \($0)" } ?? "").")
        }.joined()
    }

    /// The most lines of a merged tree; functions with less time are left out until it fits.
    private static let maximumTreeLines = 40

    private func mergedStacks(_ count: Int) -> String {
        var tree = CallTree(.topDown, leavesOutRuntimeFrames: !showsAllFrames)
        // The time above is that of the one stall, without its repeats.
        var one = report
        (one.repeats, one.repeated) = (0, nil)
        tree.add(one)
        let finished = tree.finished()
        var minimum = 0.0
        var shown = CallTreeText(finished, minimumPercent: minimum, foldsOthers: !showsAllFrames)
        if !showsAllFrames {
            for percent in [1.0, 2, 5, 10, 20] where shown.lines.count > Self.maximumTreeLines {
                minimum = percent
                shown = CallTreeText(finished, minimumPercent: percent, foldsOthers: true)
            }
        }
        var text = terminal.style("Stacks of \(count) samples, merged", .bold) + "\n"
        text += shown.lines.map { $0.text(of: finished.microseconds, for: terminal) }.joined()
        if minimum > 0 {
            text += paragraph("Functions below \(minimum.fixed(0)) % of the time are left out: --all-frames shows all.")
        }
        return text
    }

    private func list(_ milliseconds: [Double]) -> String {
        let first = milliseconds.prefix(8).map(\.duration).joined(separator: ", ")
        return first + (milliseconds.count > 8 ? " and \(milliseconds.count - 8) more" : "")
    }

    var otherThreads: String {
        (report.otherThreads ?? []).map { other in
            let call = other.systemCall.map { ", in \($0)" } ?? ""
            let owner = other.lock?.owners.first.map { " of thread \($0.thread.id)" } ?? ""
            let wait = other.lock.map { ", waits for \($0.kind.named($0.label))\(owner)" } ?? ""
            let deadlock = other.lock?.isDeadlock == true ? ", deadlocked" : ""
            let reason = other.reason.map { "  \($0.printable)\n" } ?? ""
            return title(of: other.thread, other.threadState, "\(call)\(wait)\(deadlock)")
                + (other.stack.map { frames(of: $0) } ?? "") + reason
        }.joined(separator: "\n")
    }

    /// How many threads wait in run loops, by their start functions: resident threads, also forgotten ones.
    var waitingLoops: String {
        let runners = (report.otherThreads ?? []).compactMap { other -> String? in
            let frames = other.stack.map(report.provenFrames) ?? []
            guard frames.isOfRunLoopItself, other.threadState == .blocked else { return nil }
            // Threads of different kinds may share the function that runs their loops.
            return frames.last { $0.isInApp && $0.isWritten && $0.function != nil }.map(report.name(of:))
        }
        let counts = Dictionary(grouping: runners) { $0 }.mapValues(\.count)
        let lines = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { function, count in
            "\(counted(count, "thread waits in a run loop", "threads wait in run loops")) of \(function.printable).\n"
        }
        return lines.isEmpty ? "" : "\n" + lines.joined()
    }

    private func title(
        of thread: StallReport.ThreadDescription, _ state: StallReport.ThreadState?, _ words: String
    ) -> String {
        let text = "T\(thread.inWords.dropFirst())\(state.map { ", \($0.rawValue)" } ?? "")\(words)"
        return terminal.style(text.printable, .bold) + "\n"
    }

    /// The heading of the watched thread's stacks among those of all threads; empty for a pool.
    var watchedThread: String {
        guard let thread = report.loop.thread else { return "" }
        return title(of: thread, report.samples.last?.threadState, ", \(report.loop.label)")
    }

    /// A stack's frames, innermost first; runtime frames are folded.
    func frames(of stack: Int, indentation: String = "  ") -> String {
        var text = ""
        var folded = 0
        func flush() {
            guard folded > 0 else { return }
            let note = "… " + counted(folded, "runtime frame", "runtime frames")
            text += indentation + "     " + terminal.style(note, .faint) + "\n"
            folded = 0
        }
        for (number, index) in report.stacks[stack].enumerated() {
            let frame = report.frames[index]
            if frame.isRuntimeFrame == true, !showsAllFrames {
                folded += 1
            } else {
                flush()
                text += indentation + line(of: frame, number: number) + "\n"
            }
        }
        flush()
        return text
    }

    func line(of frame: StallReport.Frame, number: Int) -> String {
        let image = frame.image.map { report.images[$0].name }
        let name = report.name(of: frame)
        let place = frame.file.map { sourcePlace($0, frame.line) } ?? (frame.function == nil ? nil : image)
        var notes = [place].compactMap(\.self)
        if frame.isInlined == true { notes.append("inlined") }
        if frame.isTailCall == true { notes.append("tail call") }
        if frame.isUncertain == true { notes.append("uncertain") }
        if frame.kind == .asyncCaller { notes.append("async caller") }
        if frame.kind == .signal { notes.append("a signal came here") }
        let isInApp = frame.isInApp && !frame.isOfMonitor
        let mark = isInApp ? ">" : " "
        let prefix = "\(mark) \(String(number).padded(to: 2, .right)) "
        let note = notes.isEmpty ? "" : "  " + notes.joined(separator: ", ").printable
        let room = (terminal.width ?? .max) - 2 - prefix.columns - note.columns
        let shown = name.printable.truncated(to: max(room, 20))
        return isInApp
            ? terminal.style(prefix + shown, .bold) + terminal.style(note, .cyan)
            : terminal.style(prefix + shown + note, .faint)
    }

    private static let methods: [StallReport.CaptureMethod: String] = [
        .read: "read from /proc", .ptrace: "stopped with ptrace", .signal: "copied by a signal handler",
    ]

    private func heading(_ title: String, _ samples: [StallReport.Sample]) -> String {
        var text = "\(title) at \(list(samples.map(\.atMilliseconds)))"
        if let first = samples.first {
            let method = first.method.map { Self.methods[$0] ?? $0.rawValue }
            let words = [first.threadState?.rawValue, method].compactMap(\.self)
            if !words.isEmpty { text += " (\(words.joined(separator: ", ")))" }
            if !first.isComplete { text += "; incomplete\(first.reason.map { ": \($0)" } ?? "")" }
        }
        return paragraph(text, .bold)
    }
}

extension StallReport.Frame {
    /// Whether the function is one of StallWatch's own modules, which are linked into the app.
    var isOfMonitor: Bool {
        [
            "$s10StallWatch", "$s17StallWatchTesting", "$s12StallReports", "$s12StackCapture", "$s12StallSymbols",
            "$s12LinuxSupport", "clinux_", "cunwind_", "csymbols_",
        ].contains { symbol?.hasPrefix($0) == true }
    }
}
