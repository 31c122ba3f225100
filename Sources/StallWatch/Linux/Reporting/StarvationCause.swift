import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

/// Makes the cause of a starvation from what the pool's workers with code of the app on their stacks were doing.
struct StarvationCause {
    private struct Worker {
        var kind: Cause.Kind
        var function: String
        /// What it does there, in words; `nil` if it runs a run loop that waits for events.
        var doing: String?
    }

    private let workers: [Worker]
    private let report: StallReport
    private let width: Int?

    /// Takes the activity of each worker from the record, and its functions from the report of the same starvation.
    init(_ record: StallRecord, _ report: StallReport) {
        self.report = report
        width = record.poolWidth
        guard let index = record.samples.lastIndex(where: { !$0.workers.isEmpty }),
            report.samples.indices.contains(index)
        else {
            workers = []
            return
        }
        var activities: [Int32: Cause.Kind] = [:]
        for worker in record.samples[index].workers {
            // It was stopped outside of a system call, where it computes or has a page fault. Its activity was read after
            // that, when it may have no work any more.
            let wasRunning = (try? worker.stack.get())?.threadState == .running
            activities[worker.thread.id] = wasRunning ? .cpu : worker.activity
        }
        workers = (report.samples[index].workers ?? []).flatMap { group -> [Worker] in
            guard let stack = group.stack,
                let culprit = StallReport.culprit(
                    of: report.stacks[stack].map { report.frames[$0] }, images: report.images)
            else { return [] }
            let frames = report.provenFrames(ofStack: stack)
            return group.threads.compactMap { thread in
                activities[thread.id].map {
                    Worker(kind: $0, function: culprit.function, doing: Self.doing($0, culprit.function, frames))
                }
            }
        }
    }

    /// The cause; `nil` if no worker is busy, or nothing is known of those that are.
    var cause: StallReport.Cause? {
        let counts = Dictionary(grouping: workers) { "\($0.kind.rawValue) \($0.function) \($0.doing ?? "")" }
        guard let largest = counts.values.max(by: { ($0.count, $1[0].function) < ($1.count, $0[0].function) }),
            let first = largest.first
        else { return nil }
        let running = Double(workers.count { $0.kind == .cpu }) / Double(workers.count)
        return StallReport.Cause(
            first.kind, sentence(largest.count, first), largest.count == workers.count ? .likely : .possible,
            cpuShare: running, in: report)
    }

    private func sentence(_ count: Int, _ worker: Worker) -> String {
        let all = workers.count
        let isWhole = all == width
        let busy = isWhole ? "" : "busy "
        let priorities = report.loop.kind == .threadPool ? "" : " for each priority"
        let limit = isWhole ? "" : width.map { ", which has \($0)\(priorities)," } ?? ""
        guard let doing = worker.doing else {
            let pool = (report.loop.kind == .globalQueue ? "the global queue" : "the pool") + limit
            let loops = count == 1 ? "runs a run loop" : "run run loops"
            let what = "\(loops), started in \(worker.function), and wait\(count == 1 ? "s" : "") for events"
            return switch (count, all) {
            case (1, 1): "The one \(busy)thread of \(pool) \(what)."
            case (all, _): "\(all) of \(all) threads of \(pool) \(what)\(isWhole ? "" : "; no other is busy")."
            default: "\(count) of \(all) \(busy)threads of \(pool) \(what)."
            }
        }
        let threads =
            switch (count, all) {
            case (1, 1): "The one \(busy)thread of the pool\(limit) is"
            case (2, 2): "Both \(busy)threads of the pool\(limit) are"
            case (all, _): "All \(all) \(busy)threads of the pool\(limit) are"
            default: "\(count) of \(all) \(busy)threads of the pool\(limit) \(count == 1 ? "is" : "are")"
            }
        return "\(threads) in \(worker.function), \(doing)."
    }

    private static func doing(_ kind: Cause.Kind, _ function: String, _ frames: [StallReport.Frame]) -> String? {
        let inner = frames.prefix { $0.function != function }
        return switch kind {
        case .cpu: "computing"
        case _ where frames.isOfRunLoopItself: nil
        case .lock where inner.call(StallReport.semaphoreWaits):
            "waiting for a semaphore; if the code that signals it waits for this pool, that code cannot run"
        case .lock where inner.call(StallReport.groupWaits):
            "waiting for a dispatch group; if the code that leaves it waits for this pool, that code cannot run"
        case .lock: "waiting for a lock or a signal"
        case .sleep: "sleeping"
        case .io: "waiting for input or output"
        case .paging: "waiting for pages of memory"
        default: "waiting in a system call"
        }
    }
}
