/// Finds a pool's workers among the threads of a process and puts those with equal stacks together.
enum WorkerGroups {
    /// The functions that every worker thread of libdispatch runs in, also those of Swift's cooperative pool.
    static let workerFunctions: Set<String> = ["_dispatch_worker_thread", "_dispatch_root_queue_drain"]

    /// The groups, largest first; `nil` when the sample is of a loop with a thread of its own.
    static func group(
        _ sample: StallRecord.Sample, _ tables: inout ReportTables, _ symbolicator: any Symbolicating
    ) -> [StallReport.WorkerGroup]? {
        guard !sample.workers.isEmpty else { return nil }
        var groups: [StallReport.WorkerGroup] = []
        for worker in sample.workers {
            guard let captured = try? worker.stack.get() else { continue }
            guard captured.frames.contains(where: { isInWorkerFunction($0, sample.images, symbolicator) }) else {
                continue
            }
            let stack = tables.stack(captured, in: sample.images)
            if let known = groups.firstIndex(where: { $0.stack == stack }) {
                groups[known].threads.append(worker.thread)
            } else {
                groups.append(StallReport.WorkerGroup(stack: stack, threads: [worker.thread]))
            }
        }
        return groups.sorted { $0.threads.count > $1.threads.count }
    }

    private static func isInWorkerFunction(
        _ frame: CapturedStack.Frame, _ images: ImageList, _ symbolicator: any Symbolicating
    ) -> Bool {
        guard let image = images.image(at: frame.lookupAddress) else { return false }
        let identity = ImageIdentity(path: image.path, buildID: image.buildID, isOwnExecutable: image.isExecutable)
        return symbolicator.symbol(at: frame.lookupAddress &- image.base, in: identity).map(workerFunctions.contains)
            ?? false
    }
}
