import Foundation
import StallReports
import StallWatch
import Synchronization
import TextOutput

/// Prints what the monitor reports: a line when a loop freezes, and where, why and what to do when it is over.
final class Screen: Sendable {
    private static let doing: [StallReport.CauseKind: String] = [
        .continuation: "waits for a reply", .cpu: "computes", .cpuContention: "gets no CPU",
        .deadlock: "is in a deadlock", .io: "waits for I/O", .lock: "waits for a lock", .paging: "waits for pages",
        .sleep: "sleeps", .syscall: "waits in a system call", .throttled: "gets no CPU",
    ]

    private let directory: String
    private let width: Int?
    private let began = ContinuousClock.now
    private let reports = Mutex<[StallReport]>([])

    init(directory: String, width: Int?) { (self.directory, self.width) = (directory, width) }

    /// Called by the monitor, on a thread of its own: the main thread is frozen.
    func show(_ event: StallEvent) {
        print(lines(about: event, after: ContinuousClock.now - began), terminator: "")
        if case .ended(let report) = event { reports.withLock { $0.append(report) } }
    }

    func reports(about loop: String) -> Int { reports.withLock { $0.count { $0.loop.label == loop } } }

    func end() { print(end(of: reports.withLock { $0 }, after: ContinuousClock.now - began)) }

    func lines(about event: StallEvent, after time: Duration) -> String {
        switch event {
        case .began(let report):
            // A short freeze is over before its functions have names.
            guard report.state == .ongoing else { return "" }
            // Any thread may signal a semaphore: it is no lock.
            let semaphore = report.cause?.lock.flatMap { $0.kind.hasOwner ? nil : "waits for \($0.kind.named(nil))" }
            let doing = semaphore ?? report.cause.flatMap { Self.doing[$0.kind] }
            return line(time, report, report.kind == .stall ? "is frozen" : report.kind.verbs.present, doing)
        case .ended(let report):
            let verb = report.kind == .stall ? "was frozen for" : report.kind.verbs.past
            let place = report.culprit.flatMap { culprit in culprit.file.map { sourcePlace($0, culprit.line) } }
            let words = [report.why.map { "why  " + $0 }, report.advice.map { "try  " + $0.text }].compactMap(\.self)
            let indentation = String(repeating: " ", count: 15)
            return line(time, report, "\(verb) \(seconds(report.durationMilliseconds, 2))", place)
                + words.map { "          \($0)".wrapped(to: width ?? 80, indentation: indentation) + "\n" }.joined()
        }
    }

    func end(of all: [StallReport], after time: Duration) -> String {
        let frozen = all.reduce(0) { $0 + $1.durationMilliseconds }
        let freezes = all.count == 1 ? "1 freeze" : "\(all.count) freezes"
        let folder = directory == "stalls" ? "" : " \(directory.shellWord)"
        return """

            \(freezes), \(seconds(frozen, 1)) of \(seconds(time / .milliseconds(1), 0)). Each is a JSON file in \(directory)/.
            Next:  swift run stallwatch show\(folder) 1     the costliest one: why, owner, source
                   swift run stallwatch html\(folder)       all of them as a page
                   In your own app: 4 lines, README "Start"
            """
    }

    private func line(_ time: Duration, _ report: StallReport, _ verb: String, _ end: String?) -> String {
        let time = seconds(time / .milliseconds(1), 1).padded(to: 8, .right)
        let subject = "\(report.loop.label) \(verb)".padded(to: 28)
        let rest = end.map { "  " + $0 } ?? ""
        let room = (width ?? .max) - time.columns - subject.columns - rest.columns - 4
        let function = (report.culprit?.function ?? "").truncatedInMiddle(to: max(room, 10))
        return "\(time)  \(subject)  \(end == nil ? function : function.padded(to: min(room, 20)) + rest)\n"
    }

    private func seconds(_ milliseconds: Double, _ places: Int) -> String {
        String(format: "%.\(places)f s", milliseconds / 1_000)
    }
}
