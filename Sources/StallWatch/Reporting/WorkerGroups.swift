import StackCapture
import StallSymbols
import StallReports

/// Finds the workers of a pool among a process's threads and groups those with equal stacks.
enum WorkerGroups {
    /// Groups the workers of a sample; `nil` if the sample's loop has its own thread.
    ///
    /// - Parameters:
    ///   - sample: The sample, with all threads of the process.
    ///   - tables: Receives the stacks.
    ///   - symbol: Returns a frame's mangled name. Without names every thread counts as a worker; so does a thread with
    ///     unnamed functions, as in a stripped executable, if no thread is known to be one.
    /// - Returns: The groups.
    static func group(
        _ sample: StallRecord.Sample, _ tables: inout ReportTables,
        symbol: ((CapturedStack.Frame, ImageList) -> String?)?
    ) -> [StallReport.WorkerGroup]? {
        guard !sample.workers.isEmpty else { return nil }
        let threads = sample.workers.compactMap { worker in
            (try? worker.stack.get()).map { stack in
                (
                    thread: worker.thread, stack: stack,
                    symbols: symbol.map { symbol in stack.frames.map { symbol($0, sample.images) } } ?? [nil]
                )
            }
        }
        let workers = threads.filter { thread in
            thread.symbols.contains { $0.map(StallReport.workerFunctions.contains) ?? false }
        }
        let possible = workers.isEmpty ? threads.filter { $0.symbols.contains(nil) } : workers
        var groups: [StallReport.WorkerGroup] = []
        for worker in possible {
            let stack = tables.stack(worker.stack, in: sample.images)
            if let known = groups.firstIndex(where: { $0.stack == stack }) {
                groups[known].threads.append(.init(worker.thread, worker.stack))
            } else {
                groups.append(StallReport.WorkerGroup(stack: stack, threads: [.init(worker.thread, worker.stack)]))
            }
        }
        return groups
    }

    /// The mangled name of a frame's function.
    static func symbol(
        of frame: CapturedStack.Frame, in images: ImageList, _ symbolicator: any Symbolicating
    ) -> String? {
        guard let image = images.image(at: frame.lookupAddress) else { return nil }
        return symbolicator.symbol(at: frame.lookupAddress &- image.base, in: ImageIdentity(image))
    }
}
