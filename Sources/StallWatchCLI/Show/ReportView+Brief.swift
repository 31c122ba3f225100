import StallReports
import TextOutput

/// The report on one screen.
extension ReportView {
    /// The lines of the lowest usual terminal, without that of the next prompt.
    static let screenLines = 23
    /// The lines that frames get at least: source lines further from the place are left out first.
    private static let leastFrameLines = 5
    /// The columns where lines have no limit, because the source's lines stand side by side.
    private static let unlimitedColumns = 120
    /// On narrower terminals the owner's source stands below the waiter's.
    private static let columnsForTwo = 72

    /// What stalled, why and what to try, where the time went, the source, and the app's frames, as far as they fit.
    var brief: String {
        var context = 2
        while true {
            let source = sources(context: context)
            let above = [headline, split, source].filter { !$0.isEmpty }
            let room = Self.screenLines - 1 - (above + [more]).joined(separator: "\n").count { $0 == "\n" }
            if room >= Self.leastFrameLines || context == 0 || source.isEmpty {
                let frames = appFrames(lines: max(room, Self.leastFrameLines))
                return (above + [frames, more]).filter { !$0.isEmpty }.joined(separator: "\n")
            }
            context -= 1
        }
    }

    /// The command that shows the whole report, after the one that names functions if some have no name.
    private var more: String {
        let place = folder == ReportFiles.standardFolder ? "" : folder + " "
        let command = "stallwatch show \(place)\(report.id.suffix(12)) --all  (the whole report)"
        return (isUnnamed ? next : "") + paragraph("Next: " + command, indentation: "      ", .faint)
    }

    // MARK: - Frames

    /// What an operation waits for, each owner of the lock with its innermost frame, and the app's frames of the stack with
    /// the most time; all frames if none is the app's.
    private func appFrames(lines room: Int) -> String {
        let shares = report.stackShares
        let most = shares.max { ($0.value, $1.key) < ($1.value, $0.key) }
        var text = waitChain
        for owner in report.cause?.lock?.owners ?? [] {
            text += paragraph("Held by \(words(for: owner))", .bold)
            if let stack = owner.stack { text += ownFrames(of: stack).first ?? "" }
        }
        if let most {
            let own = ownFrames(of: most.key)
            let part = shares.count > 1 ? " for \((most.value * 100).fixed(0)) % of the time" : ""
            text += terminal.style((own.isEmpty ? "Stack" : "The app's frames") + part, .bold) + "\n"
            text += own.isEmpty ? frames(of: most.key) : own.joined()
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

    // MARK: - Source

    /// A column of source lines.
    private struct Excerpt {
        let title: String
        let lines: [String]
        let place: Int

        init?(_ title: String, _ file: String?, _ line: Int?, _ files: SourceFiles, context: Int) {
            guard let file, let line,
                var excerpt = SourceExcerpt(files.lines(of: file), around: line, context: context)
            else { return nil }
            let indentations = excerpt.lines.filter { !$0.allSatisfy { $0 == " " } }.map {
                $0.prefix { $0 == " " }.count
            }
            let indentation = indentations.min() ?? 0
            excerpt.lines = excerpt.lines.map { String($0.dropFirst(indentation)) }
            self.title = title + sourcePlace(file, line).printable
            lines = excerpt.numberedLines
            place = excerpt.place
        }
    }

    /// The source around the culprit and, for a lock, that of its owner beside it.
    private func sources(context: Int) -> String {
        let culprit = report.culprit
        let held = report.cause?.lock?.owners.first.flatMap { report.frame(of: $0) }
        let owner = Excerpt("holds it: ", held?.file, held?.line, sources, context: context)
        let title = owner == nil ? "" : "waits: "
        let waiter = Excerpt(title, culprit?.file, culprit?.line, sources, context: context)
        let both = [waiter, owner].compactMap(\.self)
        let columns = terminal.width ?? Self.unlimitedColumns
        guard both.count == 2, columns >= Self.columnsForTwo else {
            return both.flatMap { rows(of: $0, width: columns) }.map { $0 + "\n" }.joined()
        }
        let width = (columns - 2) / 2
        let (left, right) = (rows(of: both[0], width: width, padded: width), rows(of: both[1], width: width))
        let blank = String(repeating: " ", count: width)
        return (0..<max(left.count, right.count)).map { row in
            guard right.indices.contains(row) else { return left[row] + "\n" }
            return (left.indices.contains(row) ? left[row] : blank) + "  " + right[row] + "\n"
        }.joined()
    }

    /// The title and the lines, cut and padded to a number of columns.
    private func rows(of excerpt: Excerpt, width: Int, padded: Int = 0) -> [String] {
        func row(_ text: String, _ style: Terminal.Style) -> String {
            terminal.style(text.truncated(to: width).padded(to: padded), style)
        }
        return [row(excerpt.title, .bold)]
            + excerpt.lines.enumerated().map { row($1, $0 == excerpt.place ? .bold : .faint) }
    }
}
