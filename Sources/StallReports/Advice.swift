/// What to do about a stall, in one sentence.
///
/// Where the cause is certain or likely, its frames decide what to change. Where it is only possible, the sentence names the
/// command that would tell. It is computed when a report is shown, and not stored.
public struct Advice: Codable, Sendable, Equatable {
    /// The id of the rule that decided it, such as `sleep`; later versions may add some.
    public var rule: String
    /// One sentence that says what to change, with the names of the app's functions.
    public var text: String
    /// The page that says more, as a path in StallWatch's repository: `docs/causes/sleep.md`.
    public var page: String

    /// The word of the page: `sleep`.
    package var topic: String { String(page.split(separator: "/").last?.prefix { $0 != "." } ?? "") }

    /// The command that prints the page: `stallwatch explain sleep`.
    package var command: String { "stallwatch explain \(topic)" }
}

extension StallReport {
    /// What to do about the stall; `nil` while its cause is not known, as before the monitor has written it.
    ///
    /// Takes some 10 us, on no monitored thread.
    public var advice: Advice? {
        // An app may have changed the report.
        guard fault == nil else { return nil }
        let facts = AdviceFacts(self)
        for rule in AdviceRule.rules(for: facts) {
            guard let text = rule.text(facts) else { continue }
            return Advice(
                rule: rule.id, text: (loop.isOfGLib ? text.inGLibsWords : text).withoutControls,
                page: rule.page(for: self))
        }
        return nil
    }
}

extension StallReport.LoopDescription {
    /// Whether it is the main context of GLib, as `stallwatch run` calls it: the program may be in C or in Python.
    var isOfGLib: Bool { kind == .probe && label == "glib" }
}

extension String {
    /// The advice with GLib's functions in place of those of Swift's libraries.
    fileprivate var inGLibsWords: String { glibsWords.reduce(self) { $0.replacing($1.0, with: $1.1) } }
}

/// The special ones first.
private let glibsWords = [
    ("(Timer, DispatchQueue.asyncAfter)", "(g_timeout_add)"), ("(DispatchQueue.main.async)", "(g_idle_add)"),
    ("split it with await Task.yield()", "split it into calls of g_idle_add"),
    ("do it in pieces, each of which submits the next with async", "split it into calls of g_idle_add"),
    ("try await Task.sleep(for:), which gives the thread back", "g_timeout_add"),
    ("on a queue or in a detached task", "in a thread (g_thread_new)"), ("a detached task", "a thread, g_thread_new"),
    ("when a DispatchSource or a readabilityHandler reports some", "when g_unix_fd_add reports some"),
    ("a DispatchSource (makeSignalSource)", "g_unix_signal_add"), ("a DispatchSource", "g_unix_fd_add"),
    ("DispatchSource", "g_unix_fd_add"), ("set Process.terminationHandler", "call g_child_watch_add"),
    (
        "set FileHandle.readabilityHandler, or read its pipe with a DispatchIO",
        "read its pipe when g_unix_fd_add says so"
    ),
    ("URLSession, NIO", "GIO"), ("a serial queue or a thread of its own", "a thread of its own"),
    ("a serial queue", "a thread"), ("another queue", "another thread"),
]

/// A rule of what to do: the first one of its list that gives a text decides.
package struct AdviceRule: Sendable {
    package var id: String
    /// The name of its page in docs/causes, without the suffix.
    var topic: String
    /// The same for the threads of a global queue; `nil` if it is no other one.
    var globalQueueTopic: String?
    /// The same for a cause, if it is another one.
    var causeTopics: [StallReport.CauseKind: String] = [:]
    /// The sentence; `nil` if the rule does not apply.
    var text: @Sendable (AdviceFacts) -> String?

    package var page: String { Self.page(topic) }

    func page(for report: StallReport) -> String {
        let ofCause = report.cause.flatMap { causeTopics[$0.kind] }
        return Self.page(ofCause ?? (report.loop.kind == .globalQueue ? globalQueueTopic : nil) ?? topic)
    }

    private static func page(_ topic: String) -> String { "docs/causes/\(topic).md" }
}

struct AdviceFacts {
    let report: StallReport
    /// The report's cause; an unknown one if it has none.
    let cause: StallReport.Cause
    /// The frames of the stack with the most time, innermost first; of the stacks with the culprit, if there are any.
    let frames: [StallReport.Frame]

    init(_ report: StallReport) {
        self.report = report
        cause =
            report.cause
            ?? .init(
                kind: .unknown, confidence: .possible, onCPUMilliseconds: 0, runQueueMilliseconds: 0,
                blockedMilliseconds: 0, uncertaintyMilliseconds: 0)
        frames = report.culpritStack.map { report.provenFrames(ofStack: $0.index) } ?? []
    }

    /// Whether the cause is more than a possible one, and the culprit explains half of the time or more.
    var isSure: Bool {
        [.certain, .likely].contains(cause.confidence) && cause.kind != .unknown && report.culprit?.share ?? 1 >= 0.5
    }

    // MARK: - Places

    /// The culprit with its line; `nil` if there is none.
    var culprit: String? { report.culprit.map { StallReport.place($0.function, $0.file, $0.line) } }

    /// The culprit, or the function that is around this closure and called it: it can be moved as a whole.
    var movable: String? {
        report.culprit.flatMap { frames.function(around: $0.function)?.place } ?? culprit
    }

    /// What to do about a function that computes and waits; `nil` for another one.
    var moveWhole: String? {
        guard let culprit = report.culprit, culprit.share ?? 0 >= 0.5, let place = movable,
            let wait = report.longestWait?.function,
            [wait, report.longestRun?.function ?? wait].allSatisfy({
                $0 == culprit.function || $0.hasSuffix(" in \(culprit.function)")
            })
        else { return nil }
        return "Move \(place) off \(loop): the turn computes for \(cause.onCPUMilliseconds.whole) ms, and is blocked "
            + "for \(cause.blockedMilliseconds.whole) ms."
    }

    /// What to do about a turn of which two functions, the longest wait's and another one, shared the time.
    func runLessOften(_ function: String, at place: String? = nil) -> String? {
        guard let wait = report.longestWait, let waiting = wait.place, function != wait.function else { return nil }
        let fewer = "submit fewer blocks at a time, or on another queue."
        let reason =
            callerOfBoth(function, wait.function).map { " in \($0), which calls both: " }
            ?? ": they shared the time. If many blocks were submitted at once, "
        return "Run \(place ?? function) and \(waiting) less often\(reason)\(fewer)"
    }

    /// The app's innermost function that called them both, with its line; `nil` if the stacks show none.
    private func callerOfBoth(_ function: String, _ other: String?) -> String? {
        func callers(of function: String?, _ frames: [StallReport.Frame]) -> [StallReport.Frame] {
            frames.turn.drop { $0.function != function }.dropFirst().filter { $0.isPlaceOfApp && $0.function != "main" }
        }
        let stacks = Set(report.samples.compactMap(\.stack)).sorted().map { report.provenFrames(ofStack: $0) }
        let others = stacks.flatMap { callers(of: other, $0) }.map(\.function)
        return stacks.flatMap { callers(of: function, $0) }.first { others.contains($0.function) }?.place
    }

    /// The app's function that called the culprit, with its line.
    var caller: String? {
        let outer = frames.drop { $0.function != report.culprit?.function }.drop {
            $0.function == report.culprit?.function
        }
        let callers = outer.prefix { StallReport.Callout(symbol: $0.symbol) == nil }
        let written = callers.filter { $0.isPlaceOfApp && $0.kind != .asyncCaller && $0.function != "main" }
        // The compiler's ways to a function: `__allocating_init`, one-time initialization.
        return written.first { frame in !["__", "one-time "].contains { frame.function?.contains($0) == true } }?.place
    }

    /// Where the code runs now, as the end of "Move it off …".
    var loop: String { isOfPool ? "the pool" : "the loop" }

    /// Whether the loop is the main thread's, and runs the main queue, or GLib's main context.
    var isOnMain: Bool {
        switch report.loop.kind {
        case .mainQueue: true
        case .runLoop: report.loop.label == "main" || report.loop.thread.map { $0.id == report.process.pid } ?? true
        // The main thread may run another queue's work, and a loop of the app's own runs no queue.
        default: report.loop.isOfGLib
        }
    }

    /// How another thread calls code on the loop, as a parenthesis.
    var callBack: String {
        switch report.loop.kind {
        case .runLoop where !isOnMain: " (CFRunLoopPerformBlock, then CFRunLoopWakeUp)"
        case .dispatchQueue: " (async on its queue)"
        case .eventLoop: " (EventLoop.execute)"
        default: isOnMain ? " (DispatchQueue.main.async)" : ""
        }
    }

    /// How a long piece of work is split on the loop.
    var pieces: String {
        if report.loop.kind == .probe, !report.loop.isOfGLib { return "do one piece in each turn" }
        let way =
            switch report.loop.kind {
            case .runLoop where !isOnMain: callBack
            case .eventLoop: " with EventLoop.execute"
            default: " with async"
            }
        return "do it in pieces, each of which submits the next\(way)"
    }

    /// The culprit, and its caller if it may be a lock's wrapper.
    var culpritsWay: String? { frames.drop { $0.function != report.culprit?.function }.way ?? culprit }

    var isOfPool: Bool {
        report.kind == .pinned || [.cooperativePool, .globalQueue, .threadPool].contains(report.loop.kind)
    }

    /// The command that shows what all threads do.
    var stacks: String { "stallwatch stacks \(process)" }

    /// The command that shows what all tasks wait for.
    var tasks: String { "stallwatch tasks \(process)" }

    /// The process for a command: by its name if the stall is over, because the next process has another pid.
    private var process: String {
        let name = report.process.name
        let isPlain = name.first?.isLetter == true && name.utf8.count <= 40
        let isWord = name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "._-".contains($0)) }
        return report.state != .ongoing && isPlain && isWord ? name : "\(report.process.pid)"
    }

    /// When a command has to be run that looks at the process.
    var again: String { report.state == .ongoing ? "while it lasts" : "when it lasts again" }

    /// The command that shows what the stalls like this one cost; which folder they are in is not known here.
    var tree: String? { report.fingerprint.map { "stallwatch tree --fingerprint \($0.prefix(8)) --bottom-up" } }

    /// The thread that the lock's whole chain waits for, with the app's function in which it is.
    var lastOwner: (owner: StallReport.LockOwner, place: String)? {
        freeOwner.flatMap { owner in report.place(of: owner).map { (owner, $0) } }
    }

    /// The thread that the lock's whole chain waits for.
    var freeOwner: StallReport.LockOwner? {
        cause.describesMost ? cause.lock?.owners.last.flatMap { $0.waitsFor == nil ? $0 : nil } : nil
    }

    // MARK: - Calls and functions

    /// The kind of wait, if the thread waited in a call, and its target.
    func call(_ kinds: StallReport.CauseKind..., in names: Set<String>) -> StallReport.SystemCall? {
        guard kinds.contains(cause.kind), let call = cause.systemCall, names.contains(call.name) else { return nil }
        return call
    }

    /// Whether a function on the stack, inside of the culprit, has one of these names; symbols' versions do not count.
    func calls(_ names: Set<String>) -> Bool { inner.call(names) }

    /// Whether a package's code, which the app cannot change, is between the culprit and the innermost function.
    var isThroughDependency: Bool { inner.contains { $0.isDependency == true } }

    /// Whether only the system's and Swift's libraries are between the culprit and the innermost function.
    var isCalledDirectly: Bool {
        !isThroughDependency
            && inner.allSatisfy { frame in
                guard !frame.isInApp, let image = frame.image.map({ report.images[$0] }) else { return true }
                return image.isInApp == true || Self.platform.contains { image.name.hasPrefix($0) }
            }
    }

    private static let platform = [
        "libc.so", "libpthread.so", "libstdc++.so", "libFoundation", "lib_FoundationICU", "libswift", "libdispatch",
    ]

    /// The frames between the culprit and the innermost function: what the culprit called.
    private var inner: ArraySlice<StallReport.Frame> {
        frames.prefix { !($0.isInApp && $0.function == report.culprit?.function) }
    }

    /// Whether code that is not the app's took half of the time or more, inside of the culprit.
    func isMostly(_ isLibrary: (StallReport.Frame, String) -> Bool) -> Bool {
        guard let culprit = report.culprit?.function else { return false }
        // Once for each stack, because thousands of samples may have the same.
        let shares = report.stackShares.filter { stack, _ in
            let frames = report.provenFrames(ofStack: stack)
            guard let place = frames.firstIndex(where: { $0.function == culprit }) else { return false }
            return frames[..<place].contains { frame in
                !frame.isInApp && isLibrary(frame, frame.image.map { report.images[$0].name } ?? "")
            }
        }
        return shares.values.reduce(0, +) >= 0.5
    }

    /// Whether the turn ran a Swift task: not the task of an async `main` that runs the loop.
    var isInTask: Bool {
        report.loop.kind == .cooperativePool || report.kind == .pinned || frames.areOfTask
    }
}

extension [StallReport.Frame] {
    /// Whether the turn that they are of runs a Swift task.
    var areOfTask: Bool {
        prefix { StallReport.Callout(symbol: $0.symbol) == nil }.contains { frame in
            frame.kind == .asyncCaller
                || ["swift_job_run", "runJobInEstablishedExecutorContext"].contains { name in
                    frame.function?.contains(name) == true
                }
        }
    }
}

extension StallReport.SystemCall {
    /// Whether the other end of a socket is on this machine, or not known.
    var isLocal: Bool {
        hasOtherEnd
            || target.map { target in
                let lead = ["socket to ", "socket at "].first { target.hasPrefix($0) }
                let address = target.dropFirst(lead?.count ?? 0)
                return !Self.isOfInternet(address)
                    || ["127.", "[::1]", "[::ffff:127."].contains { address.hasPrefix($0) }
            } == true
    }

    /// Whether it is an address with a port, `192.0.2.1:80` or `[2001:db8::1]:80`: the path of a Unix socket may be any text.
    private static func isOfInternet(_ address: Substring) -> Bool {
        guard let colon = address.lastIndex(of: ":"), UInt16(address[address.index(after: colon)...]) != nil else {
            return false
        }
        let host = address[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Whether the other end was looked for: a FIFO has one, a regular file has none.
    private var hasOtherEnd: Bool { peers != nil || missingPeersReason != nil }

    /// The path of a regular file, judged by its name: `nil` for devices, pipes, sockets and files of the kernel.
    var filePath: String? {
        guard let target, target.hasPrefix("/"), !hasOtherEnd,
            !["/dev/", "/proc/", "/sys/"].contains(where: { target.hasPrefix($0) })
        else { return nil }
        return target
    }

    /// Whether the kernel makes the file's text for each read, which may take long: it has no event to wait for.
    var isOfKernel: Bool { ["/proc/", "/sys/"].contains { target?.hasPrefix($0) == true } }

    var isSocket: Bool { target?.hasPrefix("socket") == true }
    var isPipe: Bool { target?.hasPrefix("pipe:") == true }
}
