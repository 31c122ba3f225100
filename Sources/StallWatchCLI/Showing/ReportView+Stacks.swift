import StallReports

extension ReportView {
    /// The samples' stacks: each once, with the times at which it was seen.
    var stacks: String {
        var order: [Int] = []
        var samples: [Int: [StallReport.Sample]] = [:]
        for sample in report.samples {
            guard let stack = sample.stack else { continue }
            if samples[stack] == nil { order.append(stack) }
            samples[stack, default: []].append(sample)
        }
        var text = order.map { stack in
            heading("Stack", samples[stack] ?? []) + frames(of: stack)
        }.joined(separator: "\n")
        for group in report.samples.flatMap({ $0.workers ?? [] }) {
            guard let stack = group.stack, samples[stack] == nil else { continue }
            text += "\n" + terminal.style("Workers: \(counted(group.threads.count, "thread", "threads"))", .bold) + "\n"
            text += frames(of: stack)
        }
        for sample in report.samples where sample.stack == nil {
            let reason = sample.reason.map { ": \($0)" } ?? ""
            text += "No stack at \(sample.atMilliseconds.duration)\(reason).\n".printableLines
        }
        return text
    }

    /// The other threads, if the report has them.
    var otherThreads: String {
        (report.otherThreads ?? []).map { other in
            let name = other.thread.name.map { " \"\($0)\"" } ?? ""
            let state = other.threadState.map { ", \($0.rawValue)" } ?? ""
            let title = terminal.style("Thread \(other.thread.id)\(name)\(state)".printable, .bold) + "\n"
            let reason = other.reason.map { "  \($0.printable)\n" } ?? ""
            return title + (other.stack.map { frames(of: $0) } ?? "") + reason
        }.joined(separator: "\n")
    }

    /// A stack's frames, innermost first; those that only pass a call on are folded.
    func frames(of stack: Int, indentation: String = "  ") -> String {
        let indices = report.stacks[stack]
        var text = ""
        var folded = 0
        func flush() {
            guard folded > 0 else { return }
            let note = "… " + counted(folded, "frame that only passes on the call", "frames that only pass on the call")
            text += indentation + "     " + terminal.style(note, .faint) + "\n"
            folded = 0
        }
        for (number, index) in indices.enumerated() {
            let frame = report.frames[index]
            if frame.isRuntimeFrame == true, !showsAllFrames {
                folded += 1
                continue
            }
            flush()
            text += indentation + line(of: frame, number: number) + "\n"
        }
        flush()
        return text
    }

    private func line(of frame: StallReport.Frame, number: Int) -> String {
        let image = frame.image.map { report.images[$0].name }
        let name = frame.function ?? image.map { "\($0)+\(frame.offset)" } ?? frame.offset
        var notes: [String] = []
        if let file = frame.file {
            notes.append(fileName(file) + (frame.line.map { ":\($0)" } ?? ""))
        } else if frame.function != nil, let image {
            notes.append(image)
        }
        if frame.isInlined == true { notes.append("inlined") }
        if frame.kind == .asyncCaller { notes.append("awaits") }
        let mark = frame.isInApp ? ">" : " "
        let prefix = "\(mark) \(String(number).padded(to: 2, .right)) "
        let note = notes.isEmpty ? "" : "  " + notes.joined(separator: ", ").printable
        let room = (terminal.width ?? .max) - 2 - prefix.columns - note.columns
        let shown = name.printable.truncated(to: max(room, 20))
        return frame.isInApp
            ? terminal.style(prefix + shown, .bold) + terminal.style(note, .cyan)
            : terminal.style(prefix + shown + note, .faint)
    }

    private func heading(_ title: String, _ samples: [StallReport.Sample]) -> String {
        let times = samples.prefix(8).map(\.atMilliseconds.duration).joined(separator: ", ")
        let more = samples.count > 8 ? ", and \(samples.count - 8) more" : ""
        var text = terminal.style("\(title) at \(times)\(more)", .bold)
        if let first = samples.first {
            let words = [first.threadState?.rawValue, first.method?.rawValue].compactMap(\.self)
            if !words.isEmpty { text += terminal.style("  \(words.joined(separator: ", "))".printable, .faint) }
            if !first.isComplete { text += "  not complete\(first.reason.map { ": \($0.printable)" } ?? "")" }
        }
        return text + "\n"
    }
}

extension String {
    /// ``printable``, line by line.
    fileprivate var printableLines: String {
        split(separator: "\n", omittingEmptySubsequences: false).map { String($0).printable }.joined(separator: "\n")
    }
}
