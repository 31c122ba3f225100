import StallReports
import TextOutput

/// The report on one screen.
extension ReportView {
    /// The lines of the lowest usual terminal, without that of the next prompt.
    static let screenLines = 23
    /// The lines that frames get before source lines around the place do, and those that they get in any case.
    private static let (frameLines, leastFrameLines) = (5, 2)

    /// What stalled, why and what to try, where the time went, the source, and the app's frames, as far as they fit.
    var brief: String {
        var context = 2
        while true {
            let lines = source(context: context)
            let above = [headline, split, lines].filter { !$0.isEmpty }
            let room = Self.screenLines - 1 - (above + [more]).joined(separator: "\n").count { $0 == "\n" }
            if room >= Self.frameLines || context == 0 || lines.isEmpty {
                let frames = appFrames(lines: max(room, Self.leastFrameLines))
                return (above + [frames, more]).filter { !$0.isEmpty }.joined(separator: "\n")
            }
            context -= 1
        }
    }

    /// The command that shows the whole report, after the one that names functions if some have no name.
    private var more: String {
        let place = folder == ReportFiles.standardFolder ? "" : folder + " "
        let command = "Next: \(Invocation.name) show \(place)\(report.id.suffix(12)) --all"
        let remark = "  (the whole report)"
        let isShort = (command + remark).columns <= terminal.width ?? .max
        return (isUnnamed ? next : "") + paragraph(command + (isShort ? remark : ""), indentation: "      ", .faint)
    }

    /// What an operation waits for, each other owner of the lock with its innermost frames, and the app's frames of the
    /// culprit's stack; all frames if none is the app's.
    private func appFrames(lines room: Int) -> String {
        var text = waitChain
        let lock = report.cause?.lock
        for (index, owner) in (lock?.owners ?? []).enumerated() where owner.thread.id != report.loop.thread?.id {
            let lead = lock?.leadOfOwner(index) ?? ""
            text += paragraph(lead.prefix(1).uppercased() + lead.dropFirst() + " " + words(for: owner), .bold)
            if let stack = owner.stack { text += ownFrames(of: stack).prefix(2).joined() }
        }
        if let (stack, share) = report.culpritStack {
            let own = ownFrames(of: stack)
            let part = report.stackShares.count > 1 ? " for \((share * 100).fixed(0)) % of the time" : ""
            text += terminal.style((own.isEmpty ? "Stack" : "The app's frames") + part, .bold) + "\n"
            text += own.isEmpty ? frames(of: stack) : own.joined()
        } else {
            text += stacks
        }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        guard lines.count > room else { return text }
        let left = counted(lines.count - room + 1, "more line", "more lines")
        return lines.prefix(room - 1).joined(separator: "\n") + "\n" + terminal.style("     … \(left)", .faint) + "\n"
    }

    private func ownFrames(of stack: Int) -> [String] {
        report.stacks[stack].enumerated().compactMap { number, index in
            let frame = report.frames[index]
            let isOwn = frame.isInApp && frame.isRuntimeFrame != true && !frame.isOfMonitor
            return isOwn ? "  " + line(of: frame, number: number) + "\n" : nil
        }
    }
}
