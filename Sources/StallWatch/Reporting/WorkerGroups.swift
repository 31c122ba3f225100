import StackCapture
import StallSymbols
import StallReports

/// Finds the workers of a pool among a process's threads and groups those with equal stacks.
enum WorkerGroups {
    /// The functions in the stack of every libdispatch worker, including the workers of Swift's cooperative pool.
    static let workerFunctions: Set<String> = ["_dispatch_worker_thread", "_dispatch_root_queue_drain"]

    /// Groups the workers of a sample; `nil` if the sample's loop has its own thread.
    ///
    /// Groups with in-app frames come first, larger groups before smaller ones. Idle workers and those of libdispatch
    /// itself are often more, but they delay no work.
    static func group(
        _ sample: StallRecord.Sample, _ tables: inout ReportTables,
        isWorker: (CapturedStack.Frame, ImageList) -> Bool
    ) -> [StallReport.WorkerGroup]? {
        guard !sample.workers.isEmpty else { return nil }
        var groups: [StallReport.WorkerGroup] = []
        // Stacks with in-app frames.
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

    /// Whether a frame is in one of ``workerFunctions``.
    static func isInWorkerFunction(
        _ frame: CapturedStack.Frame, _ images: ImageList, _ symbolicator: any Symbolicating
    ) -> Bool {
        guard let image = images.image(at: frame.lookupAddress) else { return false }
        return symbolicator.symbol(at: frame.lookupAddress &- image.base, in: ImageIdentity(image)).map(
            workerFunctions.contains)
            ?? false
    }
}
