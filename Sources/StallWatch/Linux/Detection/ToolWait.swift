import LinuxSupport
import StackCapture
import StallReports

/// The waits of a tool that are its work: its main task waits for input, a child or a signal.
enum ToolWait {
    /// The id of a process's first task, which the async `main` of a tool is.
    static let mainTask: UInt64 = 1
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
        case "poll", "ppoll":
            call.argument(1) == 1 && memory.integer(at: call.argument(0)) == 0 || untilExit()
        // The first number that is not asked about.
        case "select", "pselect6": call.argument(0) == 1 || untilExit()
        default: others.contains(call.name) || StallReport.loopWaits.contains(call.name) && untilExit()
        }
    }

    static func isExpected(
        of task: UInt64, in call: SystemCall?, _ frames: [CapturedFrame], _ context: WatchdogContext
    ) -> Bool {
        isExpected(of: task, in: call, GuardedMemory()) { isUntilExit(frames, context) }
    }

    static func isUntilExit(_ frames: [CapturedFrame], _ context: WatchdogContext) -> Bool {
        WaitFunctionNames.shared.isWaitUntilExit(frames, in: context.capturer.images())
    }

    /// A wait on the main thread that is no stall, because nothing waits for the thread.
    struct Look {
        /// When the turn began, in monotonic nanoseconds, which identifies it.
        let turn: UInt64
        /// The thread in the wait; `nil` once the turn counts, because it has gone on, or something waits for it.
        var reading: ThreadReading?
        /// The last time at which it was no stall, in monotonic nanoseconds.
        var time: UInt64
        /// When it was last known what waits, or the wait was first met.
        var knownAt: UInt64

        /// For how long what is not known counts as nothing, as while the monitor prepares, in nanoseconds: 10 s.
        static let longestUnknown: UInt64 = 10_000_000_000
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
            !isNeeded(in: stall, at: time)
        {
            toolWait?.time = time
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
            let reading = inspection.reading ?? diagnostician.read(thread, after: stack)
        else { return false }
        let isUntilExit = ToolWait.isUntilExit(stack.frames, context)
        // The run of `Process.waitUntilExit()` is its own.
        guard isUntilExit || !stack.frames.contains(where: { loop.source.runFunction.contains($0.address) }),
            ToolWait.isExpected(
                of: task, in: diagnostician.call(of: reading, stack), GuardedMemory(), untilExit: { isUntilExit }),
            !isNeeded(in: stall, at: time)
        else { return false }
        suppress(.noTaskWaited)
        let knownAt = toolWait.flatMap { $0.turn == stall.turnBegan ? $0.knownAt : nil } ?? time
        toolWait = ToolWait.Look(turn: stall.turnBegan, reading: reading, time: time, knownAt: knownAt)
        return true
    }

    /// Whether something waits for the loop; what is not known counts as nothing for some time.
    ///
    /// Between runs of the loop its timers count as none.
    private mutating func isNeeded(in stall: StallDetector.Stall, at time: UInt64) -> Bool {
        let isSameTurn = toolWait?.turn == stall.turnBegan
        guard let known = victimReader.look(at: time, context.operations(since: stall.start, at: time)).hasVictims
        else {
            return isSameTurn && toolWait.map { time - min($0.knownAt, time) > ToolWait.Look.longestUnknown } ?? false
        }
        if isSameTurn { toolWait?.knownAt = time }
        return known
    }
}
