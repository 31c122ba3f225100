package import StallReports

extension StallReport {
    /// The functions in the stack of every libdispatch worker, including the workers of Swift's cooperative pool.
    package static let workerFunctions: Set<String> = ["_dispatch_worker_thread", "_dispatch_root_queue_drain"]

    /// Orders the workers of each sample of a pool by what they tell, and leaves out threads that are no workers.
    ///
    /// Groups with in-app frames come first, larger groups before smaller ones: idle workers are often more, but they delay
    /// no work. The first group's stack is the sample's. Without the names of libdispatch's functions, as in a stripped
    /// executable, every thread may be a worker.
    package mutating func sortWorkers() {
        for index in samples.indices {
            guard let groups = samples[index].workers, !groups.isEmpty else { continue }
            let workers = groups.filter { frames(of: $0).contains(where: Self.isOfWorker) }
            let sorted = (workers.isEmpty ? groups : workers).sorted { first, second in
                let (isFirstBusy, isSecondBusy) = (isBusy(first), isBusy(second))
                return isFirstBusy == isSecondBusy ? first.threads.count > second.threads.count : isFirstBusy
            }
            samples[index].workers = sorted
            samples[index].stack = sorted.first?.stack
        }
    }

    private func frames(of group: WorkerGroup) -> [Frame] { group.stack.map { stacks[$0].map { frames[$0] } } ?? [] }

    private func isBusy(_ group: WorkerGroup) -> Bool {
        frames(of: group).contains { frame in
            // A library may be linked into the executable.
            frame.isInApp && frame.symbol.map(RuntimeLibrary.contains) != true
        }
    }

    private static func isOfWorker(_ frame: Frame) -> Bool { frame.symbol.map(workerFunctions.contains) ?? false }
}
