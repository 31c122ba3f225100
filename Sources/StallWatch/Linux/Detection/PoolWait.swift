import LinuxSupport

/// A heartbeat of the task pool that is late, but nothing of the app is: its threads compute, and no task waits for one.
struct PoolWait {
    /// When its turn began, in monotonic nanoseconds, which identifies it.
    let turn: UInt64
    /// The last time at which it was no stall, in monotonic nanoseconds.
    let time: UInt64
    /// Whether the last look has found something else, since when the turn counts.
    let isOver: Bool
}

extension LoopSupervisor {
    /// Returns from when a turn over the threshold is measured anew, in monotonic nanoseconds, as it delays no task, or may have
    /// begun to; `nil` if it is a stall.
    ///
    /// Items start in their order: a task that waits does so until the heartbeat, which came before it, has run.
    mutating func followPoolWait(_ stall: StallDetector.Stall, at time: UInt64) -> UInt64? {
        guard loop.source.kind == .cooperativePool else { return nil }
        let last = poolWait.flatMap { $0.turn == stall.turnBegan ? $0 : nil }
        // The looks at the turns before have taken their part of the CPU.
        if last == nil, time < poolRestsUntil {
            log.isUncertain = true
            return poolRestsUntil
        }
        let before = threadTimeNow()
        var delaysNone = false
        context.timeCheck { delaysNone = context.delaysNoTask(loop, context.loops) }
        poolRestsUntil = context.now() &+ (threadTimeNow() &- before) &* PoolSupervisor.restFactor
        if delaysNone {
            suppress(.noTaskWaited)
            poolWait = PoolWait(turn: stall.turnBegan, time: time, isOver: false)
            return poolRestsUntil
        }
        guard let last, !last.isOver else { return nil }
        poolWait = PoolWait(turn: last.turn, time: last.time, isOver: true)
        return time
    }

    /// Whether the whole task pool does not start tasks in time, or may not since a moment ago.
    var isStarved: Bool {
        guard loop.source.kind == .cooperativePool else { return false }
        return detector.stall != nil || isPoolWaitOver(log.began)
    }

    /// Whether a turn that delayed no task has begun to.
    func isPoolWaitOver(_ turn: UInt64) -> Bool { poolWait.map { $0.isOver && $0.turn == turn } ?? false }
}
