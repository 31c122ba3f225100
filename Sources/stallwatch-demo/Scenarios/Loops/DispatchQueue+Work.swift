import Dispatch

extension DispatchQueue {
    /// Runs `work` on the queue and returns how long it took.
    func time(_ work: @escaping @Sendable () -> Void) async -> Duration {
        await withCheckedContinuation { continuation in
            async { continuation.resume(returning: DrivenLoop.time(work)) }
        }
    }

    /// Submits `count` blocks to a serial queue before the first one runs.
    ///
    /// Together they take `duration`. The first half calls one function, the second half another.
    ///
    /// - Parameters:
    ///   - count: The number of blocks.
    ///   - duration: The time of all blocks.
    /// - Returns: How long all blocks took.
    func burst(_ count: Int, for duration: Duration) async -> Duration {
        await withCheckedContinuation { continuation in
            async { [self] in
                let begin = SuspendingClock.now
                let each = duration / count
                for index in 0..<count {
                    async {
                        if index < count / 2 { sleepTooLong(for: each) } else { spinTheCPU(for: each) }
                        if index == count - 1 { continuation.resume(returning: SuspendingClock.now - begin) }
                    }
                }
            }
        }
    }
}
