// The sentences name what to change first, and stay below two lines. The comment above a rule names a stall that looks
// alike. A new rule needs a page in docs/causes, a right case and a near miss in AdviceTests, and a stall, a cured twin
// and a near miss in the demo (Scenario+Advice.swift).

extension AdviceRule {
    /// The rules, special ones first.
    package static let all: [AdviceRule] =
        deadlocks + waits + pools + files + network + children + computing + [contention, quota, paging]

    private static let reads: Set<String> = ["read", "pread64", "readv", "preadv", "preadv2", "getdents64"]
    private static let writes: Set<String> = [
        "write", "pwrite64", "writev", "pwritev", "pwritev2", "fallocate", "ftruncate",
    ]
    private static let syncs: Set<String> = ["fsync", "fdatasync", "syncfs", "sync_file_range", "msync"]
    private static let sockets: Set<String> = [
        "connect", "read", "readv", "recvfrom", "recvmsg", "write", "writev", "sendto", "sendmsg",
    ]
    private static let sleeps: Set<String> = ["nanosleep", "clock_nanosleep"]
    private static let mutexes: Set<StallReport.LockKind> = [
        .pthreadMutex, .swiftMutex, .pthreadReadWriteLock, .dispatchUnfairLock,
    ]

    // MARK: - Locks

    private static let deadlocks = [
        // Silent for two threads that wait for each other.
        AdviceRule(id: "selfDeadlock", topic: "deadlock") { facts in
            guard facts.cause.kind == .deadlock, let lock = facts.cause.lock, lock.owners.count == 1,
                let place = facts.culprit, lock.owners[0].thread.id == facts.report.loop.thread?.id
            else { return nil }
            if lock.kind == .dispatchQueue {
                return "Do not call sync in \(place) on a queue that it runs on already: call the work directly."
            }
            guard mutexes.contains(lock.kind) else { return nil }
            return "Do not take the lock again in \(place), which holds it already: "
                + "move the work to a function that expects the lock to be held, and call that one."
        },
        // Silent for a cycle in which a thread's line is not known.
        AdviceRule(id: "lockOrder", topic: "deadlock") { facts in
            guard facts.cause.kind == .deadlock, let lock = facts.cause.lock, lock.isDeadlock, lock.owners.count == 2,
                lock.owners[1].thread.id == facts.report.loop.thread?.id,
                let here = facts.culprit, let there = facts.report.place(of: lock.owners[0]), here != there,
                mutexes.contains(lock.kind), lock.owners[0].waitsFor.map(mutexes.contains) == true
            else { return nil }
            return "Take the two locks in the same order in both places: \(here) holds one and waits for the other, "
                + "\(there) the other way round."
        },
    ]

    private static let waits = [
        // Silent for an owner that computes, or whose function is not known.
        AdviceRule(id: "ownerWaits", topic: "lock") { facts in
            guard facts.cause.kind == .lock, let lock = facts.cause.lock, mutexes.contains(lock.kind),
                let owner = lock.owners.last, owner.waitsFor == nil, !owner.isRunning, let call = owner.systemCall,
                call.filePath != nil || call.isSocket || sleeps.contains(call.name),
                let place = facts.report.place(of: owner)
            else { return nil }
            let work = sleeps.contains(call.name) ? "sleep" : "call of \(call)"
            return "Move the \(work) in \(place) out of the section that holds the lock: "
                + "copy what it needs under the lock, and let go of it first."
        },
        // Silent for the same wait on a thread that runs no task.
        AdviceRule(id: "semaphoreInTask", topic: "lock") { facts in
            guard facts.cause.kind == .lock, facts.isInTask, let place = facts.culprit else { return nil }
            let isGroup = facts.cause.lock?.kind == .dispatchGroup || facts.calls(StallReport.groupWaits)
            let isSemaphore =
                [.dispatchSemaphore, .semaphore].contains(facts.cause.lock?.kind)
                || facts.calls(StallReport.semaphoreWaits)
            guard isGroup || isSemaphore else { return nil }
            let instead =
                isGroup
                ? "await a task group, or resume a continuation in notify(queue:)"
                : "await a continuation that the other side resumes (withCheckedContinuation)"
            return "Do not block the task in \(place): \(instead)."
        },
        // Silent for a wait with a time limit, such as poll(2), and for code that sleeps between its tries.
        AdviceRule(id: "sleep", topic: "sleep") { facts in
            guard facts.call(.sleep, in: sleeps) != nil || facts.cause.kind == .sleep && facts.calls(sleeps),
                facts.isCalledDirectly, !facts.cause.polls, let place = facts.culprit
            else { return nil }
            return facts.isInTask
                ? "Replace the sleep in \(place) by try await Task.sleep(for:), which gives the thread back."
                : "Move the sleep in \(place) off \(facts.loop): "
                    + "let a timer call what comes after it (Timer, DispatchQueue.asyncAfter)."
        },
    ]

    // MARK: - Pools

    private static let pools = [
        // Silent for a thread of the pool that computes in a callout of its run loop.
        AdviceRule(id: "runLoopInPool", topic: "pool") { facts in
            guard facts.isOfPool, facts.cause.kind != .cpu, facts.frames.isOfRunLoopItself, let place = facts.culprit
            else { return nil }
            return "Give the run loop in \(place) a thread of its own (Thread), one for all its work: "
                + "as long as it runs, it keeps a thread of the pool."
        }
    ]

    // MARK: - Input and output

    private static let files = [
        // Silent for a write to the same file that waits by itself.
        AdviceRule(id: "fsync", topic: "io") { facts in
            guard let call = facts.call(.io, .cpu, in: syncs), let place = facts.culprit else { return nil }
            return "Move the \(call) in \(place) off \(facts.loop), to a serial queue for this file: "
                + "one sync there can stand for many changes."
        },
        // Silent for the same call on a pipe, a socket or a terminal.
        AdviceRule(id: "fileRead", topic: "io") { facts in
            guard let (path, place) = file(of: facts, in: reads) else { return nil }
            return "Move the read of \(path) in \(place) off \(facts.loop): "
                + "read it on a queue or in a detached task, and come back with the data."
        },
        // Silent for the same call on a pipe, a socket or a terminal.
        AdviceRule(id: "fileWrite", topic: "io") { facts in
            guard let (path, place) = file(of: facts, in: writes) else { return nil }
            return "Move the write to \(path) in \(place) off \(facts.loop): "
                + "hand the data to a serial queue that writes it."
        },
    ]

    /// The file and the culprit, if the thread waited in such a call or spent its time on the CPU in the kernel.
    private static func file(of facts: AdviceFacts, in calls: Set<String>) -> (path: String, place: String)? {
        guard let path = facts.call(.io, .cpu, in: calls)?.filePath, let place = facts.culprit,
            facts.cause.kind == .io || facts.cause.kernelShare ?? 0 >= 0.5
        else { return nil }
        return (path, place)
    }

    private static let network = [
        // Silent for a connection to an address that is known.
        AdviceRule(id: "nameResolution", topic: "network") { facts in
            guard [.io, .syscall, .lock].contains(facts.cause.kind), facts.calls(StallReport.resolvers),
                let place = facts.culprit
            else { return nil }
            return
                "Resolve the name in \(place) off \(facts.loop): the resolver waits up to 5 s for each try of a server "
                + "(resolv.conf(5))."
        },
        // Silent for a read from a file, or from a socket of this machine.
        AdviceRule(id: "socket", topic: "network") { facts in
            guard let call = facts.call(.io, in: sockets), call.isSocket || call.name == "connect", !call.isLocal,
                let place = facts.culprit
            else { return nil }
            return "Do not wait for the network in \(place): \(call) returns when the other side answers. "
                + "Use an async client (URLSession, NIO), or a thread of its own."
        },
    ]

    private static let children = [
        // Silent for a child that is still computing.
        AdviceRule(id: "childPipe", topic: "children") { facts in
            guard let call = facts.call(.syscall, .io, in: ["wait4", "waitid"]), let place = facts.culprit,
                let child = call.peers?.first(where: { $0.role == .child }), child.systemCall == "write",
                child.target?.hasPrefix("pipe:") == true
            else { return nil }
            return "Read the child's output to its end before \(place) waits for it: "
                + "\(child.name ?? "the child") is blocked in a write to its full pipe."
        },
        // Silent for a read from a file that a child has written.
        AdviceRule(id: "child", topic: "children") { facts in
            guard facts.call(.syscall, .io, in: ["wait4", "waitid"]) != nil, let place = facts.culprit else {
                return nil
            }
            return "Do not wait for the child in \(place): "
                + "set Process.terminationHandler, or wait on a thread of its own."
        },
        // Silent for a pipe whose writer is this process.
        AdviceRule(id: "pipe", topic: "children") { facts in
            guard let call = facts.call(.io, in: ["read", "readv"]), call.isPipe, let place = facts.culprit,
                let writer = call.peers?.first(where: { $0.role == .writer }), writer.isThisProcess != true
            else { return nil }
            return "Do not wait for \(writer.name ?? "another process") in \(place): "
                + "set FileHandle.readabilityHandler, or read its pipe with a DispatchIO."
        },
    ]

    // MARK: - Processors and memory

    private static let computing = [
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
                "Move the image work in \(place) off \(facts.loop): decode once, at the size that is shown, and keep it."
        },
    ]

    // Silent for code that computes while others do, too, and on a host that runs other machines.
    private static let contention = AdviceRule(id: "contention", topic: "contention") { facts in
        guard facts.cause.kind == .cpuContention, !facts.cause.isStolen else { return nil }
        return "Run fewer busy threads than there are CPUs, or give the others a lower priority (nice, QoS utility): "
            + "\(facts.report.loop.label) was ready and had no CPU. In a container, give it more CPU shares."
    }

    // Silent for other programs that use the machine's CPUs.
    private static let quota = AdviceRule(id: "quota", topic: "contention") { facts in
        guard facts.cause.kind == .throttled else { return nil }
        return "Raise the container's CPU limit (cpu.max), or use fewer threads: "
            + "all of them share the quota, which was used up."
    }

    // Silent for a read(2) of a file that is not in memory.
    private static let paging = AdviceRule(id: "paging", topic: "paging") { facts in
        guard facts.cause.kind == .paging, facts.cause.majorFaults > 0 else { return nil }
        let file = facts.cause.pagedFile.map { "touch \($0) ahead of time off \(facts.loop) (MADV_WILLNEED)" }
        return "Give the process more memory, or \(file ?? "use less of it at a time"): "
            + "\(facts.cause.majorFaults) pages had to come from a disk."
    }
}
