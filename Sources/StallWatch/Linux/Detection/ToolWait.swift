import LinuxSupport
import StackCapture
import StallReports

/// The waits of a tool that are its work: its main task waits for input, a child or a signal.
enum ToolWait {
    /// The id of a process's first task, which the async `main` of a tool is.
    static let mainTask: UInt64 = 1
    private static let polls = StallReport.loopWaits.union(["select", "pselect6"])
    private static let others: Set = ["wait4", "waitid", "rt_sigtimedwait", "rt_sigsuspend", "pause"]

    /// Returns whether a task is the main one, and its call such a wait.
    ///
    /// Any library may poll descriptors: only a poll of standard input alone counts, and that of `Process.waitUntilExit()`.
    static func isExpected(
        of task: UInt64, in call: SystemCall?, _ memory: any MemoryReading, untilExit: () -> Bool
    ) -> Bool {
        guard task == mainTask, let call else { return false }
        return switch call.name {
        case "read": call.argument(0) == 0
        case "poll" where call.argument(1) == 1 && memory.integer(at: call.argument(0)) == 0,
            "ppoll" where call.argument(1) == 1 && memory.integer(at: call.argument(0)) == 0,
            // The number of descriptors: only the first is asked about.
            "select" where call.argument(0) == 1, "pselect6" where call.argument(0) == 1:
            true
        default: others.contains(call.name) || polls.contains(call.name) && untilExit()
        }
    }

    static func isExpected(
        of task: UInt64, in call: SystemCall?, _ frames: [CapturedFrame], _ context: WatchdogContext
    ) -> Bool {
        isExpected(of: task, in: call, GuardedMemory()) {
            WaitFunctionNames.shared.isWaitUntilExit(frames, in: context.capturer.images())
        }
    }

    /// A wait on the main thread that is no stall, because nothing waits for the thread.
    struct Look {
        /// When the turn began, in monotonic nanoseconds, which identifies it.
        let turn: UInt64
        /// The thread in the wait; `nil` once the turn counts, because it has gone on, or something waits for it.
        var reading: ThreadReading?
        /// The last time at which it was no stall, in monotonic nanoseconds.
        var time: UInt64
        var count = 1

        /// The number of looks at which what waits may be unknown, as while the monitor prepares.
        static let mostUnknown = 8
    }
}

extension LoopSupervisor {
    /// Returns whether a tool's wait that was no stall at the last look has gone on, or ended since.
    ///
    /// What the thread does now, and what waits for it now, counts from here.
    mutating func followToolWait(_ stall: StallDetector.Stall, _ poll: LoopPoll, at time: UInt64) -> Bool {
        guard let wait = toolWait, wait.turn == stall.turnBegan, let before = wait.reading,
            case .thread(let thread) = poll.target
        else { return false }
        if let now = diagnostician.read(thread), !now.isRunnable, !now.hasRun(since: before),
            !isNeeded(since: stall.start, at: time)
        {
            toolWait?.time = time
            toolWait?.count += 1
        } else {
            toolWait?.reading = nil
        }
        return true
    }

    /// Returns whether the thread of a turn over the threshold is in such a wait, itself, in no run of the loop.
    mutating func beginsToolWait(
        _ inspection: TurnLog.Inspection, of stall: StallDetector.Stall, _ poll: LoopPoll, at time: UInt64
    ) -> Bool {
        guard victimReader.readsMainQueue, case .thread(let thread) = poll.target, let stack = inspection.stack,
            let task = stack.context?.task?.id, task == ToolWait.mainTask,
            let reading = inspection.reading ?? diagnostician.read(thread, after: stack),
            ToolWait.isExpected(of: task, in: reading.activity.call, stack.frames, context)
        else { return false }
        let isOfPoll = reading.activity.call.map { StallReport.loopWaits.contains($0.name) } ?? false
        // The run of `Process.waitUntilExit()` is its own.
        guard isOfPoll || !stack.frames.contains(where: { loop.source.runFunction.contains($0.address) }),
            !isNeeded(since: stall.start, at: time)
        else { return false }
        suppress(.noTaskWaited)
        let count = toolWait.flatMap { $0.turn == stall.turnBegan ? $0.count : nil } ?? 0
        toolWait = ToolWait.Look(turn: stall.turnBegan, reading: reading, time: time, count: count + 1)
        return true
    }

    private func isNeeded(since start: UInt64, at time: UInt64) -> Bool {
        let count = toolWait?.count ?? 0
        return victimReader.look(at: time, context.operations(start, time)).hasVictims
            ?? (count >= ToolWait.Look.mostUnknown)
    }
}
