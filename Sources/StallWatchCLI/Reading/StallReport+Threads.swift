import StallReports

extension StallReport {
    /// The threads that may have a context of their own, each with its place in the report.
    var describedThreads: [(place: String, thread: ThreadDescription)] {
        var threads: [(String, ThreadDescription)] = []
        for (index, other) in (otherThreads ?? []).enumerated() {
            threads.append(("otherThreads[\(index)].thread", other.thread))
        }
        for (index, sample) in samples.enumerated() {
            for (group, workers) in (sample.workers ?? []).enumerated() {
                for (number, thread) in workers.threads.enumerated() {
                    threads.append(("samples[\(index)].workers[\(group)].threads[\(number)]", thread))
                }
            }
        }
        return threads
    }
}
