import StackCapture
import StallSymbols
import StallReports

/// Finds a pool's workers among the threads of a process and puts those with equal stacks together.
enum WorkerGroups {
    /// The functions that every worker thread of libdispatch runs in, also those of Swift's cooperative pool.
    static let workerFunctions: Set<String> = ["_dispatch_worker_thread", "_dispatch_root_queue_drain"]

    /// The groups, `nil` when the sample is of a loop with a thread of its own.
    ///
    /// Workers in code of the app come first, the largest group before the others: those that have nothing to do, or
    /// belong to libdispatch itself, are often more, and keep no work from starting.
    static func group(
        _ sample: StallRecord.Sample, _ tables: inout ReportTables,
        isWorker: (CapturedStack.Frame, ImageList) -> Bool
    ) -> [StallReport.WorkerGroup]? {
        guard !sample.workers.isEmpty else { return nil }
        var groups: [StallReport.WorkerGroup] = []
        // The stacks with code of the app in them.
        var busy: Set<Int?> = []
        for worker in sample.workers {
            guard let captured = try? worker.stack.get() else { continue }
            guard captured.frames.contains(where: { isWorker($0, sample.images) }) else {
                continue
            }
            let stack = tables.stack(captured, in: sample.images)
            if tables.stacks[stack].contains(where: { tables.frames[$0].isInApp }) { busy.insert(stack) }
            if let known = groups.firstIndex(where: { $0.stack == stack }) {
                groups[known].threads.append(.init(worker.thread))
            } else {
                groups.append(StallReport.WorkerGroup(stack: stack, threads: [.init(worker.thread)]))
            }
        }
        return groups.sorted { first, second in
            let (isFirstBusy, isSecondBusy) = (busy.contains(first.stack), busy.contains(second.stack))
            return isFirstBusy == isSecondBusy ? first.threads.count > second.threads.count : isFirstBusy
        }
    }

    /// Whether a frame is in a function that every worker thread runs in.
    static func isInWorkerFunction(
        _ frame: CapturedStack.Frame, _ images: ImageList, _ symbolicator: any Symbolicating
    ) -> Bool {
        guard let image = images.image(at: frame.lookupAddress) else { return false }
        return symbolicator.symbol(at: frame.lookupAddress &- image.base, in: ImageIdentity(image)).map(
            workerFunctions.contains)
            ?? false
    }
}
