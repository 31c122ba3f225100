import StallReports
import TextOutput

struct ReportView {
    let report: StallReport
    let origin: ReportOrigin
    let terminal: Terminal
    var showsAllFrames = false
    var sources = SourceFiles(below: [])

    static let barWidth = 50

    /// The whole report; ``brief`` is its one screen.
    var text: String {
        let parts = [
            headline, split, waitChain, waitingTasks, lockChain, peers, history, stacks, source(), otherThreads, facts,
            next,
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: "\n")
    }

    var threads: String {
        [lockChain, peers, waitingTasks, watchedThread + stacks, otherThreads].filter { !$0.isEmpty }.joined(
            separator: "\n")
    }

    // MARK: - Sentence and cause

    var headline: String {
        var lines = paragraph(stall(loop: report.loop.label) { $0 } + report.poolInWords, .bold)
        if let why = report.why {
            let confidence = report.cause.map { " (\($0.confidence.rawValue))" } ?? ""
            lines += paragraph("\(report.causeWord)\(confidence): \(why)", .yellow)
        } else if let reason = report.noSample {
            lines += paragraph("\(reason) What the loop did is not known.", .yellow)
        }
        if let victims = report.victimsInWords { lines += paragraph("\(victims).") }
        if let advice = report.advice {
            let text = "Try: \(advice.text) See \(advice.command)."
            let command = text.replacing("stallwatch ", with: Invocation.name + " ")
            lines += paragraph(command.replacing(" tree --fingerprint", with: " tree \(folder) --fingerprint"), .green)
        }
        if let language = StallReport.interpretedLanguage(ofExecutable: report.process.executable) {
            lines += paragraph(
                "Functions of \(language) have no names here: the stack is that of the interpreter and its libraries.")
        }
        if report.state == .ongoing {
            lines += paragraph("It was still going on when this report was written.")
        } else if report.state == .abandoned {
            lines += paragraph(
                report.cause?.kind == .deadlock
                    ? "Its end was not observed: a deadlock lasts until the process ends."
                    : "Its end was not observed: the process died or was stopped, or the monitor stopped or paused.")
        }
        return lines
    }

    /// `loop` is in the output format, for which `code` formats a function's name.
    func stall(loop: String, code: (String) -> String) -> String {
        let subject = report.pool?.subject(loop) ?? loop
        let time = report.leastInWords + report.durationMilliseconds.duration
        return "\(subject) \(report.verb) \(time)\(report.blame(code: code))"
    }

    func paragraph(_ text: String, indentation: String = "  ", _ style: Terminal.Style? = nil) -> String {
        text.printable.wrapped(to: terminal.width, indentation: indentation).split(separator: "\n").map { line in
            (style.map { terminal.style(String(line), $0) } ?? String(line)) + "\n"
        }.joined()
    }

    var split: String {
        guard let cause = report.timedCause else { return "" }
        typealias Part = (name: String, time: Double, style: Terminal.Style, character: Character)
        let all: [Part] = [
            ("on CPU", cause.onCPUMilliseconds, .red, "█"),
            ("waiting for a CPU", cause.runQueueMilliseconds, .yellow, "▓"),
            ("blocked", cause.blockedMilliseconds, .blue, "░"),
        ]
        let total = all.reduce(0) { $0 + $1.time }
        guard total > 0, total.isFinite, all.allSatisfy({ $0.time >= 0 }) else { return "" }
        func words(_ part: Part) -> String {
            " \(part.name) \(part.time.duration) (\((part.time / total * 100).whole) %)"
        }
        func isOneLine(_ parts: [Part]) -> Bool {
            parts.reduce(0) { $0 + words($1).columns + 3 } <= terminal.width ?? .max
        }
        // A part of 0 % is not worth the line that it would take.
        let parts = isOneLine(all) ? all : all.filter { $0.time / total >= 0.005 }
        let width = min(Self.barWidth, max((terminal.width ?? 80) - 2, 10))
        let widths = Self.shares(parts.map { $0.time / total }, of: width)
        let bar = zip(parts, widths).map { part, width in
            terminal.style(String(repeating: part.character, count: width), part.style)
        }.joined()
        let legend = parts.map { terminal.style(String($0.character), $0.style) + words($0) }
        return "  \(bar)\n  \(legend.joined(separator: isOneLine(parts) ? "  " : "\n  "))\n"
    }

    /// Distributes `width` cells by `shares`, which add up to 1; a share over zero gets at least one.
    static func shares(_ shares: [Double], of width: Int) -> [Int] {
        var cells = shares.map { $0 > 0.001 ? max(Int(($0 * Double(width)).rounded()), 1) : 0 }
        while let largest = cells.indices.max(by: { cells[$0] < cells[$1] }) {
            let excess = cells.reduce(0, +) - width
            guard excess != 0 else { break }
            cells[largest] -= excess.signum()
        }
        return cells
    }

    var waitChain: String {
        (report.waits ?? []).enumerated().map { depth, wait in
            let indentation = String(repeating: "  ", count: min(depth, 10) + 1)
            return paragraph(indentation + wait.sentence, indentation: indentation + "  ")
        }.joined()
    }

    private static let maximumTaskLines = 5

    private var waitingTasks: String {
        guard let list = report.tasks, list.tasks.contains(where: { $0.wait != nil }) else { return "" }
        let groups = TaskGraph(list, report).groups { $0.wait != nil }
        let shown = groups.prefix(Self.maximumTaskLines).map { paragraph("  " + $0.sentence, indentation: "    ") }
        let left = groups.count - shown.count
        let rest = left == 0 ? "" : "  … and in \(counted(left, "other place", "other places"))\n"
        let note = list.incompleteReason.map { paragraph("  there may be more: \($0)", indentation: "    ") } ?? ""
        return terminal.style("Tasks that wait", .bold) + "\n" + shown.joined() + rest + note
    }

    // MARK: - Facts

    private var facts: String {
        let process = report.process
        let metadata = report.metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let loop = report.loop
        let name = loop.kind == .operation ? "operation" : "loop"
        let thread = loop.thread.map { ", \($0.inWords)" } ?? ""
        let repeats = counted(report.repeats, "stall", "stalls") + " like it since the report before"
        let rows: [(String, String?)] = [
            ("began", "\(report.startedAt)"),
            (name, "\(loop.label) (\(loop.kind.inWords)), turn \(loop.turn)\(thread)"),
            ("mode", loop.mode), ("context", report.context?.inWords),
            ("threshold", report.thresholdMilliseconds.duration),
            ("process", "\(process.name), pid \(process.pid), on \(process.hostname)"),
            ("metadata", metadata.isEmpty ? nil : metadata.joined(separator: " ")),
            ("fingerprint", report.fingerprint), ("repeats", report.repeats > 0 ? repeats : nil),
            ("report", "\(report.id), \(origin)"),
        ]
        let indentation = String(repeating: " ", count: 12)
        return rows.map { name, value -> String in
            guard let value else { return "" }
            let text = paragraph(name.padded(to: 12) + value, indentation: indentation)
            return terminal.style(String(text.prefix(12)), .faint) + text.dropFirst(12)
        }.joined()
    }

    /// The reports' folder, as an argument; the file itself where a search of its folder leaves it out.
    var folder: String {
        guard origin.path != "-" else { return "REPORTS" }
        return (ReportFiles.isFound(origin.path) ? directoryName(origin.path) : origin.path).shellWord
    }
    var isUnnamed: Bool { report.frames.contains { $0.isInApp && $0.function == nil } }

    var next: String {
        let tree = report.fingerprint.map { "tree \(folder) --fingerprint \($0.prefix(8))  (all stalls like this one)" }
        // A file of several reports is not replaced.
        let place = origin.line == nil || origin.path == "-" ? "--in-place" : "--output named"
        let command =
            isUnnamed
            ? "symbolicate \(folder) \(place)  (some functions have no name)"
            : tree ?? "top \(folder)  (the stalls that cost most)"
        return paragraph("Next: \(Invocation.name) \(command)", indentation: "      ", .faint)
    }

    var lockChain: String {
        guard let lock = report.cause?.lock else { return "" }
        let address = lock.address.map { " at \($0)" } ?? ""
        let function = lock.calledFunction.map { ", in \($0)" } ?? ""
        var text = terminal.style(lock.isDeadlock ? "Deadlock" : "Lock", .bold) + "\n"
        text += paragraph(
            "  \(report.loop.label) waits for \(lock.kind.named(lock.label))\(address)\(function)", indentation: "    "
        )
        if let reason = lock.reason { text += paragraph("  its owner is not known: \(reason)", indentation: "    ") }
        for (depth, owner) in lock.owners.enumerated() {
            let indentation = String(repeating: "  ", count: min(depth, 10) + 1)
            text += paragraph(
                "\(indentation)└ \(lock.leadOfOwner(depth)) \(words(for: owner))", indentation: indentation + "    ")
            if let stack = owner.stack { text += frames(of: stack, indentation: indentation + "    ") }
        }
        if lock.isDeadlock {
            let end =
                report.state == .ended
                ? "it ended after \(report.durationMilliseconds.duration)"
                : report.cause?.confidence == .certain ? "no thread can continue" : "a time limit may end a wait"
            text += "  The threads wait in a cycle: \(end).\n"
        }
        return text
    }

    var peers: String {
        let calls = report.cause?.callsWithPeers ?? []
        guard !calls.isEmpty else { return "" }
        return calls.reduce(terminal.style("Waits for", .bold) + "\n") { text, call in
            let clauses = call.allPeersInWords.map { paragraph("  └ \($0)", indentation: "      ") }
            return text + paragraph("  in \(call)", indentation: "    ") + clauses.joined()
        }
    }

    func words(for owner: StallReport.LockOwner) -> String {
        let call = owner.systemCall.map { ", which is in \($0)" } ?? ""
        let isMeasured = owner.isStarved || owner.isRunning || owner.wasMostlyComputing
        let doing = isMeasured ? ", which \(owner.doing)" : call
        let address = owner.waitsForAddress.map { " at \($0)" } ?? ""
        let wait = owner.waitsFor.map { ", and waits for \($0.named(owner.waitsForLabel))\(address)" } ?? ""
        return report.name(of: owner.thread, stack: owner.stack) + doing + wait
    }
}
