import Foundation
import StallReports
import StallWatch
import Synchronization
import TextOutput

/// Prints what the monitor reports: a line when a loop freezes, and where, why and what to do when it is over.
final class Screen: Sendable {
    private static let doing: [StallReport.CauseKind: String] = [
        .cpu: "computes", .cpuContention: "gets no CPU", .deadlock: "is in a deadlock", .io: "waits for I/O",
        .lock: "waits for a lock", .paging: "waits for pages", .sleep: "sleeps", .syscall: "waits in a system call",
    ]

    private let directory: String
    private let began = ContinuousClock.now
    private let reports = Mutex<[StallReport]>([])

    init(directory: String) { self.directory = directory }

    /// Called by the monitor, on a thread of its own: the main thread is frozen.
    func show(_ event: StallEvent) {
        switch event {
        case .began(let report):
            // A short freeze is over before its functions have names.
            guard report.state == .ongoing else { return }
            let doing = report.cause.map { cause in
                // Any thread may signal a semaphore: it is no lock.
                guard cause.kind == .lock, let kind = cause.lock?.kind, !kind.hasOwner else {
                    return Self.doing[cause.kind] ?? cause.kind.rawValue
                }
                return "waits for \(kind.named(nil))"
            }
            print(line(report, report.kind == .stall ? "is frozen" : report.kind.verbs.present, doing))
        case .ended(let report):
            let verb = report.kind == .stall ? "was frozen for" : report.kind.verbs.past
            let place = report.culprit.flatMap { culprit in culprit.file.map { sourcePlace($0, culprit.line) } }
            print(line(report, "\(verb) \(seconds(report.durationMilliseconds, 2))", place))
            if let why = report.why { print(wrapped("why", why)) }
            if let advice = report.advice { print(wrapped("try", advice.text)) }
            reports.withLock { $0.append(report) }
        }
    }

    func reports(about loop: String) -> Int { reports.withLock { $0.count { $0.loop.label == loop } } }

    func end() {
        let all = reports.withLock { $0 }
        let frozen = all.reduce(0) { $0 + $1.durationMilliseconds }
        let whole = (ContinuousClock.now - began) / .milliseconds(1)
        let freezes = all.count == 1 ? "1 freeze" : "\(all.count) freezes"
        print("\n\(freezes), \(seconds(frozen, 1)) of \(seconds(whole, 0)). Each is a JSON file in \(directory)/.")
        let folder = directory == "stalls" ? "" : " \(directory.shellWord)"
        print("Next:  swift run stallwatch show\(folder) 1     the costliest one: stacks, owner, source")
        print("       swift run stallwatch html\(folder)       all of them as a page")
        print("       In your own app: 4 lines, README \"Start\"")
    }

    private func line(_ report: StallReport, _ verb: String, _ end: String?) -> String {
        let time = seconds((ContinuousClock.now - began) / .milliseconds(1), 1).padded(to: 8, .right)
        let subject = "\(report.loop.label) \(verb)".padded(to: 28)
        let rest = end.map { "  " + $0 } ?? ""
        let room = (Terminal.standardOutput.width ?? .max) - time.columns - subject.columns - rest.columns - 4
        let function = (report.culprit?.function ?? "").truncatedInMiddle(to: max(room, 10))
        let padded = end == nil ? function : function.padded(to: min(room, 20))
        return [time, subject, padded + rest].joined(separator: "  ")
    }

    private func wrapped(_ label: String, _ text: String) -> String {
        "          \(label)  \(text)".wrapped(
            to: Terminal.standardOutput.width ?? 80, indentation: String(repeating: " ", count: 15))
    }

    private func seconds(_ milliseconds: Double, _ places: Int) -> String {
        String(format: "%.\(places)f s", milliseconds / 1_000)
    }
}
