// What to do about waits in system calls: for times, files, other machines and processes. The rules for rules are in
// AdviceRules.swift.

extension AdviceRule {
    private static let reads: Set<String> = ["read", "pread64", "readv", "preadv", "preadv2", "getdents64"]
    private static let writes: Set<String> = [
        "write", "pwrite64", "writev", "pwritev", "pwritev2", "fallocate", "ftruncate",
    ]
    private static let syncs: Set<String> = ["fsync", "fdatasync", "syncfs", "sync_file_range", "msync"]
    private static let accepts: Set<String> = ["accept", "accept4"]
    private static let receives = accepts.union(["recvfrom", "recvmsg", "recvmmsg"])
    private static let sends: Set<String> = ["sendto", "sendmsg", "sendmmsg"]
    private static let polls = StallReport.loopWaits.union(["select", "pselect6", "epoll_pwait2"])
    private static let sockets: Set<String> = [
        "connect", "read", "readv", "recvfrom", "recvmsg", "write", "writev", "sendto", "sendmsg",
    ]
    static let sleepCalls: Set<String> = ["nanosleep", "clock_nanosleep"]

    /// Whether a call waits for input or events, as a thread does that has no work.
    static func awaitsInput(_ call: StallReport.SystemCall) -> Bool {
        polls.union(receives).contains(call.name)
            || reads.contains(call.name) && call.filePath == nil && !call.isOfKernel
    }

    // MARK: - Times

    static let sleeps = [
        // Silent for one sleep that the app's function asks for itself.
        AdviceRule(id: "polling", topic: "sleep") { facts in
            guard let place = facts.culprit else { return nil }
            guard facts.cause.polls else {
                guard facts.sleeps, !facts.isCalledDirectly else { return nil }
                return "Move the call in \(place) off \(facts.loop): "
                    + "the library that it calls sleeps, perhaps between its tries."
            }
            let event = "If \(place) waits for something, be called when that happens (a completion, a DispatchSource)"
            if let whole = facts.movable, whole != place {
                return "Take the sleep out of \(place), or move \(whole) off \(facts.loop). \(event)."
            }
            return "\(event); if it paces work, let a timer call each piece; "
                + "if it is called again and again, take the sleep out of it."
        },
        // Silent for a wait with a time limit, such as poll(2), and for code that sleeps between its tries.
        AdviceRule(id: "sleep", topic: "sleep") { facts in
            guard facts.sleeps, let place = facts.culprit else { return nil }
            // What runs it needs its value at once.
            let isGetter = facts.report.culprit?.function.hasSuffix(".getter") == true
            let returnsValue = isGetter || facts.report.culprit?.returnsValue == true && !facts.isInTask
            if returnsValue || facts.cause.sleeps != nil && !facts.isInTask {
                let caller = facts.caller.map { ", or move its caller \($0) off \(facts.loop)" } ?? ""
                return "Take the sleep out of \(place)\(caller): it delays what needs its result."
            }
            let timers =
                switch facts.report.loop.kind {
                case .eventLoop: "EventLoop.scheduleTask"
                case .runLoop: "Timer, DispatchQueue.asyncAfter"
                case .probe where facts.report.loop.isOfGLib: "Timer, DispatchQueue.asyncAfter"
                // A Timer would go to a loop that no thread runs: the main queue is watched where no run loop runs.
                default: "DispatchQueue.asyncAfter"
                }
            return facts.isInTask
                ? "Replace the sleep in \(place) by try await Task.sleep(for:), which gives the thread back."
                : "Move the sleep in \(place) off \(facts.loop): let a timer call what comes after it (\(timers))."
        },
        // Silent for a sleep.
        AdviceRule(id: "timeout", topic: "sleep") { facts in
            guard facts.cause.kind == .sleep, let place = facts.culprit else { return nil }
            let end =
                facts.call(.sleep, in: polls) == nil
                ? "let a DispatchSource call back when the event comes, and a timer when it does not."
                // It has no descriptors, so no event can come.
                : "let a timer call what comes after it."
            return "Do not wait with a time limit in \(place): \(end)"
        },
    ]

    // MARK: - Files, other machines and processes

    static let files = [
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

    static let network = [
        // Silent for a connection to an address that is known.
        AdviceRule(id: "nameResolution", topic: "network") { facts in
            guard [.io, .syscall, .lock].contains(facts.cause.kind), facts.calls(StallReport.resolvers),
                let place = facts.culprit
            else { return nil }
            return
                "Resolve the name in \(place) off \(facts.loop): the resolver waits for each try of a server, by default "
                + "up to 5 s (resolv.conf(5))."
        },
        // Silent for a read from a file, or from a socket of this machine.
        AdviceRule(id: "socket", topic: "network") { facts in
            guard let call = facts.call(.io, in: sockets), call.isSocket || call.name == "connect", !call.isLocal,
                let place = facts.culprit
            else { return nil }
            let end =
                writes.union(sends).contains(call.name)
                ? "there is room for the data"
                : call.name == "connect" ? "the other side accepts or refuses" : "the other side answers"
            return "Do not wait for a peer in \(place): \(call) returns when \(end). "
                + "Use an async client (URLSession, NIO), or a thread of its own."
        },
    ]

    static let children = [
        // Silent for a child that is still computing.
        AdviceRule(id: "childPipe", topic: "children") { facts in
            guard let child = facts.awaitedChild, child.systemCall == "write",
                child.target?.hasPrefix("pipe:") == true, let place = facts.culprit
            else { return nil }
            return "Have the child's output read to its end before \(place) waits for it, here or by the process that "
                + "its pipe leads to: \(child.name ?? "the child") was seen blocked in a write to its full pipe."
        },
        // Silent for a read from a file that a child has written.
        AdviceRule(id: "child", topic: "children") { facts in
            guard facts.call(.syscall, .io, in: ["wait4", "waitid"]) != nil || facts.awaitsProcess,
                let place = facts.culprit
            else { return nil }
            let number = facts.awaitedChild?.pid.map { " (pid \($0))" } ?? ""
            let call = facts.awaitedChild?.systemCall
            let output = call == nil ? "; read its output meanwhile: a child with a full pipe does not end" : ""
            return "Do not wait for \(facts.awaitedChild?.name ?? "the child")\(number) in \(place): "
                + "set Process.terminationHandler, or wait on a thread of its own\(output)."
        },
        // Silent for a pipe that this process has open for writing, too: a child may only have inherited its end.
        AdviceRule(id: "pipe", topic: "children") { facts in
            guard let call = facts.call(.io, in: ["read", "readv"]), call.isPipe, let place = facts.culprit,
                let writers = call.peers?.filter({ $0.role == .writer }), let writer = writers.first,
                !writers.contains(where: { $0.isThisProcess == true }), call.omittedPeers == nil
            else { return nil }
            return "Do not wait for \(writer.name ?? "another process") in \(place): "
                + "set FileHandle.readabilityHandler, or read its pipe with a DispatchIO."
        },
    ]

    // MARK: - Other calls

    // Silent for a read from a socket.
    static let closing = AdviceRule(id: "close", topic: "network") { facts in
        guard facts.call(.io, in: ["close"]) != nil, let place = facts.culprit else { return nil }
        if facts.cause.lingers {
            return "Close the socket in \(place) on another queue, or without SO_LINGER: "
                + "with it, close waits until the other end has confirmed the data."
        }
        return "Close the descriptor in \(place) on another queue, and set no SO_LINGER if it is a socket: "
            + "close may wait until data is sent or written."
    }

    // Silent for a wait without descriptors, which is a sleep.
    static let events = AdviceRule(id: "events", topic: "io") { facts in
        guard let call = facts.call(.io, .syscall, in: polls), call.target != StallReport.SystemCall.signal,
            let place = facts.culprit
        else { return nil }
        if call.target == StallReport.SystemCall.emptySet {
            return "Do not wait with a time limit in \(place): let a timer call what comes after it."
        }
        // The descriptors are the library's, which calls it for an answer: that of a database, a server or a display.
        guard facts.isCalledDirectly else {
            return "Do not wait in \(place), inside of a turn: the library that it calls waits in \(call). "
                + "Use its async calls, or a thread of their own."
        }
        return "Do not call \(call.name) in \(place), inside of a turn: "
            + "give its descriptors to the loop (DispatchSource), or to a thread of their own."
    }

    // Silent for the same call on a file, also on one of the kernel's.
    static let stream = AdviceRule(id: "stream", topic: "io") { facts in
        guard facts.cause.kind == .io, let call = facts.cause.systemCall, call.filePath == nil, !call.isOfKernel,
            let place = facts.culprit
        else { return nil }
        let target = call.target ?? "a descriptor"
        if accepts.contains(call.name) {
            return "Do not wait in \(place) until \(target) gets a connection: "
                + "accept it when a DispatchSource reports one."
        }
        if reads.union(receives).contains(call.name) {
            return "Do not wait for data of \(target) in \(place): "
                + "read it when a DispatchSource or a readabilityHandler reports some."
        }
        guard writes.union(sends).contains(call.name) else { return nil }
        return "Do not wait in \(place) until \(target) has room: "
            + "hand the data to a serial queue, or write it when a DispatchSource reports room."
    }

    // Silent for a connection to another machine.
    static let call = AdviceRule(id: "call", topic: "io") { facts in
        guard [.io, .syscall].contains(facts.cause.kind), let place = facts.culprit else { return nil }
        if facts.cause.systemCall?.target == StallReport.SystemCall.signal {
            return "Do not wait for a signal in \(place): let a DispatchSource (makeSignalSource) call back, "
                + "or wait for it on a thread of its own."
        }
        let call = facts.cause.systemCall?.description ?? facts.cause.function
        return "Move the \(call.map { "call of \($0)" } ?? "wait") in \(place) off \(facts.loop): "
            + "to a serial queue or a thread of its own, which calls back."
    }
}

extension AdviceFacts {
    /// Whether the thread slept, in a call of the app's function or of a library that it called.
    fileprivate var sleeps: Bool {
        call(.sleep, in: AdviceRule.sleepCalls) != nil || cause.kind == .sleep && calls(AdviceRule.sleepCalls)
    }

    /// The child that the thread waited for, if it is known.
    fileprivate var awaitedChild: StallReport.Peer? {
        let waits = call(.syscall, .io, in: ["wait4", "waitid"]) ?? (awaitsProcess ? cause.systemCall : nil)
        return waits?.peers?.first { $0.role == .child }
    }

    /// Whether the thread ran its loop until a process ended, in `Process.waitUntilExit()`.
    fileprivate var awaitsProcess: Bool {
        [.io, .syscall].contains(cause.kind) && frames.awaitProcess
    }
}
