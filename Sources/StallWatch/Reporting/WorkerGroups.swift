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
    ///
    /// - Parameters:
    ///   - sample: The sample.
    ///   - tables: Where the stacks are added.
    ///   - symbol: Gives a frame's mangled name; `nil` where there are no names. Without names, every thread counts as a
    ///     worker.
    /// - Returns: The groups.
    static func group(
        _ sample: StallRecord.Sample, _ tables: inout ReportTables,
        symbol: ((CapturedStack.Frame, ImageList) -> String?)?
    ) -> [StallReport.WorkerGroup]? {
        guard !sample.workers.isEmpty else { return nil }
        var groups: [StallReport.WorkerGroup] = []
        // The stacks with code of the app in them.
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
