/// Runs jobs one after the other on one thread, which ends with the last one: glibc keeps the stacks of threads that have
/// ended, and each thread beside others may get a heap of its own.
///
/// With `patience`, another thread takes the jobs that are left when one is added so long after the last one has begun, or
/// ``relieve()`` is called.
package final class JobThread: Sendable {
    /// For jobs that look only at this process, and for those that read files, which may hang.
    package static let memory = JobThread(name: "stallwatch-prep"), files = JobThread(name: "stallwatch-file")

    private struct State {
        var jobs: [(number: UInt64, body: @Sendable () -> Void)] = []
        var lastJob: UInt64 = 0
        /// The number of the thread that takes the jobs, and when it took one last, in monotonic nanoseconds.
        var thread: UInt64 = 0
        var tookJob: UInt64 = 0
        var isRunning = false
    }
    private let name: String
    /// In nanoseconds.
    private let patience: UInt64
    /// A child of fork(2) has no such thread, and none of its parent's jobs.
    private let state = ProcessMutex(State())

    package init(name: String, patience: UInt64 = .max) { (self.name, self.patience) = (name, patience) }

    /// Runs `job` after those that were added before, and never waits for it; returns `false` if the system refuses a thread.
    @discardableResult
    package func add(_ job: @escaping @Sendable () -> Void) -> Bool {
        let number = state.withLock { state -> UInt64 in
            state.lastJob += 1
            state.jobs.append((state.lastJob, job))
            return state.lastJob
        }
        if relieve() { return true }
        state.withLock { state in state.jobs.removeAll { $0.number == number } }
        return false
    }

    /// Gives the jobs that are left to another thread if the last one has begun too long ago, or there is no thread;
    /// returns `false` if the system refuses one.
    @discardableResult
    package func relieve() -> Bool {
        let now = monotonicNow()
        let begins = state.withLock { state -> UInt64? in
            let isLate = now &- min(state.tookJob, now) > patience
            guard !state.jobs.isEmpty, !state.isRunning || isLate else { return nil }
            (state.thread, state.tookJob, state.isRunning) = (state.thread + 1, now, true)
            return state.thread
        }
        guard let begins else { return true }
        // Not under the lock, for which the thread would wait.
        if let thread = try? WorkerThread(name: name, body: { [self] in run(as: begins) }) {
            thread.detach()
            return true
        }
        state.withLock { if $0.thread == begins { $0.isRunning = false } }
        return false
    }

    private func run(as thread: UInt64) {
        while let job = next(for: thread) { job() }
    }

    private func next(for thread: UInt64) -> (@Sendable () -> Void)? {
        state.withLock { state -> (@Sendable () -> Void)? in
            // Another one has taken its place.
            guard state.thread == thread else { return nil }
            state.tookJob = monotonicNow()
            if state.jobs.isEmpty { state.isRunning = false }
            return state.jobs.isEmpty ? nil : state.jobs.removeFirst().body
        }
    }
}
