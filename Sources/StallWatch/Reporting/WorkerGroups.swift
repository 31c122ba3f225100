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
    /// itself are often more, but they delay no work. `symbol` returns a frame's mangled name; without names every thread
    /// counts as a worker.
    static func group(
        _ sample: StallRecord.Sample, _ tables: inout ReportTables,
        symbol: ((CapturedStack.Frame, ImageList) -> String?)?
    ) -> [StallReport.WorkerGroup]? {
        guard !sample.workers.isEmpty else { return nil }
        var groups: [StallReport.WorkerGroup] = []
        // Stacks with in-app frames.
        var busy: Set<Int?> = []
        for worker in sample.workers {
            guard let captured = try? worker.stack.get() else { continue }
            let symbols = symbol.map { symbol in captured.frames.map { symbol($0, sample.images) } }
            if let symbols, !symbols.contains(where: { $0.map(workerFunctions.contains) ?? false }) { continue }
            let stack = tables.stack(captured, in: sample.images)
            let isBusy = tables.stacks[stack].indices.contains { index in
                // A library may be linked into the executable.
                tables.frames[tables.stacks[stack][index]].isInApp
                    && symbols?[index].map(RuntimeLibrary.contains) != true
            }
            if isBusy { busy.insert(stack) }
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

    /// The mangled name of a frame's function.
    static func symbol(
        of frame: CapturedStack.Frame, in images: ImageList, _ symbolicator: any Symbolicating
    ) -> String? {
        guard let image = images.image(at: frame.lookupAddress) else { return nil }
        return symbolicator.symbol(at: frame.lookupAddress &- image.base, in: ImageIdentity(image))
    }
}
