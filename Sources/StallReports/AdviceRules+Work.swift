// What to do about computing, the machine, pools, loops as a whole and overdue operations. The rules for rules are in
// AdviceRules.swift.

extension AdviceRule {
    // MARK: - Processors and memory

    static let computing = [
        // Silent for the app's own code between two calls of a decoder.
        AdviceRule(id: "json", topic: "cpu") { facts in
            let names = ["JSONDecoder", "JSONEncoder", "JSONSerialization", "JSONScanner", "JSONMap", "JSONWriter"]
            guard facts.cause.kind == .cpu, let place = facts.culprit,
                facts.isMostly({ frame, image in
                    let isOfFoundation =
                        image.hasPrefix("libFoundation")
                        || ["$s10Foundation", "$s20FoundationEssentials"].contains {
                            frame.symbol?.hasPrefix($0) == true
                        }
                    return isOfFoundation && names.contains { frame.function?.contains($0) == true }
                })
            else { return nil }
            return "Move the JSON work in \(place) off \(facts.loop): "
                + "do it in a detached task, and hand the result back."
        },
        // Silent for a search for a fixed text, or an expression of a package's.
        AdviceRule(id: "regex", topic: "cpu") { facts in
            guard facts.cause.kind == .cpu, !facts.isThroughDependency, let place = facts.culprit,
                facts.isMostly({ frame, _ in
                    guard let function = frame.function else { return false }
                    return ["NSRegularExpression", "RegexMatcher", "uregex_", "regexec"].contains {
                        function.contains($0)
                    }
                        || frame.symbol?.contains("17_StringProcessing") == true
                            && ["Regex", "Processor.", "Executor."].contains { function.contains($0) }
                })
            else { return nil }
            return "Move the regular expression in \(place) off \(facts.loop), and anchor it or bound its repetitions: "
                + "nested ones take exponential time."
        },
        // Silent for a copy of an image's bytes.
        AdviceRule(id: "image", topic: "cpu") { facts in
            let libraries = [
                "libpng", "libjpeg", "libturbojpeg", "libwebp", "libgd.", "libvips", "libMagick", "libheif",
            ]
            let prefixes = ["png_", "jpeg_", "stbi_", "WebPDecode", "gdImage", "vips_", "gdk_pixbuf_"]
            guard facts.cause.kind == .cpu, let place = facts.culprit,
                facts.isMostly({ frame, image in
                    libraries.contains { image.hasPrefix($0) }
                        || prefixes.contains { frame.function?.hasPrefix($0) == true }
                })
            else { return nil }
            return
                "Move the image work in \(place) off \(facts.loop). If it decodes an image, do that once, at the size "
                + "that is shown."
        },
        // Silent for a library of which one says more.
        AdviceRule(id: "compute", topic: "cpu") { facts in
            guard facts.cause.kind == .cpu, let place = facts.movable else { return nil }
            if facts.cause.repeatsOtherCall, let culprit = facts.report.culprit?.function,
                let both = facts.runLessOften(culprit, at: place)
            {
                return both
            }
            let tree = facts.tree.map { " What costs: \($0)." } ?? ""
            // Neither pieces nor a thread of the pool help against waits that are a stall by themselves.
            if facts.cause.blockedMilliseconds >= facts.report.thresholdMilliseconds, !facts.cause.repeatsOtherCall,
                let whole = facts.moveWhole
            {
                return whole + tree
            }
            let pieces = facts.isInTask ? "split it with await Task.yield()" : facts.pieces
            return "Move \(place) off \(facts.loop) (a detached task), or \(pieces).\(tree)"
        },
    ]

    // Silent for code that computes while others do, too.
    static let contention = AdviceRule(id: "contention", topic: "contention") { facts in
        let (onCPU, blocked) = (facts.cause.onCPUMilliseconds, facts.cause.blockedMilliseconds)
        // Also where no single cause explains the time, if a quarter of it is a lack of CPU.
        let isPart =
            facts.report.timedCause != nil
            && facts.cause.runQueueMilliseconds * 4 >= facts.report.durationMilliseconds
            && onCPU + blocked - facts.cause.uncertaintyMilliseconds >= facts.report.thresholdMilliseconds
        guard facts.isSure ? facts.cause.kind == .cpuContention : isPart else { return nil }
        if !facts.report.lacksCPU, let place = blocked > onCPU ? facts.report.longestWait?.place : facts.culprit {
            return "Move \(place) off \(facts.loop) first: with a CPU, too, the turn takes "
                + "\((onCPU + blocked).whole) ms. Then give this process more CPU, or run fewer busy threads (top -H)."
        }
        guard facts.isSure else { return nil }
        if facts.cause.isStolen {
            return "Give the virtual machine more CPU (another kind of instance, a higher limit): "
                + "its host ran others on that CPU, or held it to a limit."
        }
        if let competitors = facts.cause.competitors, competitors.own == 0 {
            return "Give this process more CPU (nice, its container's shares or limit), or move the other programs: "
                + "at least \(competitors.others) of their threads were ready. Which ones: top."
        }
        if let processors = facts.cause.usableProcessors {
            let those = processors.usable == 1 ? "the only one" : "the \(processors.usable)"
            if facts.cause.competitors != nil {
                return
                    "Let the thread use more CPUs (taskset, cpuset, sched_setaffinity), or run fewer busy "
                    + "threads of this process on \(those) that it may use. Which ones, \(facts.again): top -H, field P."
            }
            return "Let the thread use more CPUs (taskset, cpuset, sched_setaffinity), or run less on \(those) that it "
                + "may use. Whose threads run there, \(facts.again): top -H, field P."
        }
        return "Run fewer busy threads than there are CPUs, give the others a lower priority (nice, QoS utility), "
            + "or a container more CPU (shares, limit). Whose threads they are, \(facts.again): top -H."
    }

    // Silent for other programs that use the machine's CPUs.
    static let quota = AdviceRule(id: "quota", topic: "contention") { facts in
        guard facts.cause.kind == .throttled else { return nil }
        return "Raise the container's CPU limit (cpu.max; cgroup v1: cpu.cfs_quota_us), or run less in it: "
            + "all its threads share the quota, which was used up."
    }

    // Silent for a read(2) of a file that is not in memory.
    static let paging = AdviceRule(id: "paging", topic: "paging") { facts in
        guard facts.cause.kind == .paging else { return nil }
        if facts.cause.majorFaults == 0 {
            return
                "Have the memory touched off \(facts.loop) first: a slow disk, a file system in user space or a thread "
                + "with userfaultfd may supply its pages."
        }
        let faults = facts.cause.majorFaults == 1 ? "fault" : "faults"
        let first = facts.culprit.map { "Move \($0) off \(facts.loop)" } ?? "Use less memory at a time"
        let other = facts.cause.pagedFile.map {
            "have another thread read \(StallReport.fileName($0)) ahead of time (MADV_WILLNEED)"
        }
        return "\(first), or \(other ?? "give the process more memory"): "
            + "the thread had \(facts.cause.majorFaults) major page \(faults)."
    }

    // MARK: - Pools

    static let pools = [
        // Silent for a thread of the pool that computes in a callout of its run loop.
        AdviceRule(id: "runLoopInPool", topic: "pool") { facts in
            guard facts.isOfPool, facts.cause.kind != .cpu, facts.frames.isOfRunLoopItself, let place = facts.culprit
            else { return nil }
            return "Give the run loop in \(place) a thread of its own (Thread), one for all its work: "
                + "as long as it runs, it keeps a thread of the pool."
        },
        // Silent for one thread that waits.
        AdviceRule(id: "poolWaits", topic: "starvation", globalQueueTopic: "pool") { facts in
            guard facts.report.kind == .starvation, let place = facts.culprit,
                [.lock, .sleep, .io, .syscall, .paging].contains(facts.cause.kind)
            else { return nil }
            let instead =
                switch facts.report.loop.kind {
                case .globalQueue where facts.calls(StallReport.semaphoreWaits) || facts.calls(StallReport.groupWaits):
                    "let what comes after be called (async, notify), as the work may need a thread of the pool"
                case .cooperativePool, .taskExecutor:
                    "await instead (a continuation, Task.sleep), or do it on a thread that is not the pool's"
                case .threadPool where facts.cause.kind == .sleep, .globalQueue where facts.cause.kind == .sleep:
                    "let a timer call what comes after the sleep"
                case .threadPool: "give such calls a pool of their own, or limit how many run at a time"
                default: "do it on a serial queue, or limit how many run at a time"
                }
            return "Do not block the pool's threads in \(place): \(instead)."
        },
        // Silent for one thread that computes.
        AdviceRule(id: "poolComputes", topic: "starvation") { facts in
            guard facts.report.kind == .starvation, facts.cause.kind == .cpu, let place = facts.culprit else {
                return nil
            }
            // Not every thread is captured: of a task executor, one is.
            let advice =
                [.cooperativePool, .taskExecutor].contains(facts.report.loop.kind)
                ? "Give the thread back now and then in \(place) (await Task.yield())"
                : "Run fewer calls of \(place) at a time than there are CPUs"
            return "\(advice): the pool's threads that were seen compute."
        },
    ]

    static let pinned = [
        // Silent for a thread that computes while no task waits.
        AdviceRule(id: "pinnedComputing", topic: "pool") { facts in
            guard facts.report.pool?.isComputing == true else { return nil }
            let work = (facts.isSure ? facts.culprit : nil).map { "the work in \($0)" } ?? "its work"
            return "Give the thread back between the pieces of \(work) (await Task.yield()), "
                + "or compute on a queue of your own: other tasks wait for it."
        },
        // Silent for a lock, a semaphore and a sleep, which have rules of their own.
        AdviceRule(id: "pinnedBlocked", topic: "pool") { facts in
            guard facts.report.kind == .pinned, let place = facts.culprit else { return nil }
            return "Do not block a thread of the pool in \(place): use an async call, or make this one on a queue "
                + "of your own and resume a continuation with its result (withCheckedContinuation)."
        },
    ]

    // MARK: - Loops that are busy, spin, run in another mode or are not run

    static let loops = [
        // Silent for one long turn.
        AdviceRule(id: "saturation", topic: "saturation") { facts in
            guard facts.report.kind == .saturation else { return nil }
            let end = "the loop gets work as fast as it does it."
            guard let place = facts.culprit else {
                return "Do less in a turn, or serve several requests in one: \(end)"
            }
            let called = facts.caller.map { ", called by \($0)," } ?? ""
            // A turn of the main queue does all that is there: more at once would only make it longer.
            return facts.report.callout == .mainQueue || facts.isInTask
                ? "Move \(place)\(called) off \(facts.loop) (a detached task), or call it less often: \(end)"
                : "Do less in \(place)\(called) in each turn, serve several requests in one, or let a timer submit work "
                    + "that comes again: \(end)"
        },
        // Silent for a mode without sources.
        AdviceRule(id: "ready", topic: "spinning") { facts in
            guard let descriptor = facts.report.activity?.readyDescriptor else { return nil }
            return
                "Read what there is in \(descriptor) in the source's handler, or cancel the source at the end of the "
                + "file. What opens it, from the program's start on: strace -f -k -e pipe2,socket,openat."
        },
        // Silent for a block that submits itself again.
        AdviceRule(id: "emptyMode", topic: "spinning") { facts in
            guard facts.report.activity?.isModeEmpty == true else { return nil }
            let place = facts.culprit.map { " in \($0)" } ?? ""
            return "Run the loop\(place) in a mode that has a source or a timer (.common is no mode to run in): "
                + "without one, each run returns at once."
        },
        // Silent for a descriptor that is never read.
        AdviceRule(id: "resubmit", topic: "spinning") { facts in
            guard facts.report.kind == .spinning else { return nil }
            let work = facts.culprit.map { "what \($0) submits again" } ?? "the work that comes again at once"
            return "Stop \(work) when there is nothing to do, or use a timer (asyncAfter, DispatchSourceTimer)."
        },
        // Silent for a loop that runs in another mode.
        AdviceRule(id: "notRun", topic: "notRun") { facts in
            guard facts.report.activity?.isNotRun == true else { return nil }
            if facts.report.hasNoMainThread {
                return "Use a timer that needs no run loop (DispatchSource.makeTimerSource, Task.sleep), "
                    + "or a synchronous main that ends in RunLoop.main.run()."
            }
            let instead = facts.culprit.map { " in place of \($0)" } ?? ""
            return
                "Run the loop on its thread (RunLoop.run)\(instead), or use a timer that needs no run loop: "
                + "DispatchSource.makeTimerSource, Task.sleep."
        },
        // Silent for a loop that turns in an empty mode, or that no thread runs.
        AdviceRule(id: "mode", topic: "mode") { facts in
            guard let activity = facts.report.activity, activity.awaitedMode != nil else { return nil }
            let mode = facts.report.loop.mode.map { "\"\($0)\"" } ?? "the mode"
            return activity.isTimerDue == true
                ? "Add the timers that must not wait to \(mode), too (RunLoop.add), or to the common modes with it among "
                    + "them (CFRunLoopAddCommonMode); if all may wait, name it in modeStarvation.modalModes."
                : "Make \(mode) a common mode (CFRunLoopAddCommonMode), which serves the main queue, "
                    + "or name it in modeStarvation.modalModes."
        },
    ]

    // MARK: - Operations

    static let operations = [
        // Silent for tasks that await each other.
        AdviceRule(id: "continuation", topic: "overdue") { facts in
            guard facts.cause.kind == .continuation else { return nil }
            let last = facts.report.waits?.last
            let others =
                ", and what that waits for; or give the wait a time limit. "
                + "Other tasks, \(facts.again): \(facts.tasks)."
            if let place = last?.place, last?.stack.map(facts.report.provenFrames)?.awaitStream == true {
                return "Find what yields to or finishes the stream that \(place) reads\(others)"
            }
            if facts.report.state == .ended {
                return "Find what resumes the continuation\(facts.lastWait)\(others)"
            }
            return "Resume the continuation\(facts.lastWait) on every path, an error's and a cancellation's, too: "
                + "use withTaskCancellationHandler, or a time limit."
        },
        // Silent for threads that wait for each other's locks.
        AdviceRule(id: "taskCircle", topic: "overdue") { facts in
            guard facts.cause.kind == .deadlock else { return nil }
            return "Let one of the tasks go on without the other's value: they await each other\(facts.lastWait). "
                + "All tasks, while the process runs: \(facts.tasks)."
        },
        // Silent for a thread that sleeps.
        AdviceRule(id: "longSleep", topic: "overdue") { facts in
            guard facts.report.waits?.last?.kind == .sleep else { return nil }
            return "Shorten the sleep\(facts.lastWait), or cancel its task: "
                + "canceling the operation ends the sleeps of its own task and its child tasks only."
        },
        // Silent for a task that sleeps.
        AdviceRule(id: "heldUp", topic: "overdue") { facts in
            guard let waits = facts.report.waits, waits.last?.kind == .running, facts.cause.kind != .unknown,
                let last = waits.last(where: { $0.kind == .running && $0.place != nil }), let place = last.place
            else { return nil }
            if facts.cause.kind == .cpu {
                // A thread that is given back helps only a task that waits for it.
                let way =
                    waits.contains { [.pool, .executor].contains($0.kind) }
                    ? "give the thread back in it (await Task.yield())"
                    : "split it among child tasks (withTaskGroup)"
                let end =
                    waits.contains { $0.kind == .pool }
                    ? ", or raise the priority of the task that waits for a thread."
                    : ": the operation goes on only after it."
                return "Make \(place) shorter, or \(way)\(end)"
            }
            let threads = facts.report.otherThreads ?? []
            let lock = threads.first { $0.thread.id == last.thread }?.lock
            if let lock, mutexes.contains(lock.kind), let owner = lock.owners.first?.thread {
                let stack = threads.first { $0.thread.id == owner.id }?.stack
                let there = facts.report.frame(ofStack: stack)?.place ?? owner.inWords
                return "Let go of \(lock.kind.named(lock.label)) in \(there) before the slow part: "
                    + "\(place), for which the operation waits, waits for it."
            }
            let stack = threads.first { $0.thread.id == last.thread }?.stack
            let blocked = stack.map { facts.report.provenFrames(ofStack: $0) } ?? []
            // A callback of a run loop can await nothing, unless it runs a task.
            if !blocked.areOfTask, blocked.contains(where: { StallReport.Callout(symbol: $0.symbol) != nil }) {
                return "Move the wait in \(place) off the thread's run loop, whose callback it is in: "
                    + "the operation waits for that thread."
            }
            // A thread that is given back helps only a task that waits for it.
            guard waits.contains(where: { [.pool, .executor].contains($0.kind) }) else {
                let limit = lock?.hasTimeLimit == true ? "shorten its time limit" : "give it a time limit"
                return lock?.kind.end == nil
                    ? "Make the wait in \(place) shorter, or \(limit): the operation goes on only after it."
                    : "Find what should end the wait in \(place), and why that comes late, or \(limit). "
                        + "What other threads do, \(facts.again): \(facts.stacks)."
            }
            return "Do not block a thread in \(place), for which the operation waits: "
                + "await instead (a continuation, Task.sleep, an async call)."
        },
    ]
}

extension AdviceFacts {
    /// The place of the chain's last link: ` in load() (Loader.swift:40)`; empty if it is not known.
    fileprivate var lastWait: String { report.waits?.last?.place.map { " in \($0)" } ?? "" }
}
