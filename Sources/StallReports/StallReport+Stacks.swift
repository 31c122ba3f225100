extension StallReport {
    /// One attempt to capture the loop's stack during the stall.
    public struct Sample: Codable, Sendable, Equatable {
        /// The age of the turn at the time of the sample, in milliseconds.
        public var atMilliseconds: Double
        /// The sample's part of the duration in milliseconds; `nil` from versions that did not measure it.
        package var weightMilliseconds: Double?
        /// How often the thread was seen in this place, if more than once.
        ///
        /// A thread that has not run since it was captured is not captured again. Neighboring samples with the same
        /// stack, or with similar stacks if there are more than 20, are one sample.
        package var timesSeen: Int?
        /// Whether the sample was taken before the turn reached its threshold; absent if not.
        package var isEarly: Bool?
        /// The index of the stack in ``StallReport/stacks``; `nil` if it could not be captured.
        public var stack: Int?
        /// The reason why the stack is missing or incomplete; `nil` if it is complete.
        package var reason: String?
        package var threadState: ThreadState?
        package var method: CaptureMethod?
        /// The workers of a pool, grouped by equal stack; `nil` for other loops.
        ///
        /// Groups in the app's code come first; among those, and among the others, larger groups come first.
        public var workers: [WorkerGroup]?
        /// Whether the same turn still ran after the capture; if not, the stack may belong to a later turn.
        package var isValid: Bool
        /// Whether the stack has all frames out to the thread's first function, and none is a guess.
        package var isComplete: Bool
        /// The time for which the capture kept the thread from running, in microseconds.
        public var heldMicroseconds: Double = 0
        /// The time that the watchdog spent on the capture, in microseconds.
        public var captureMicroseconds: Double = 0
    }

    /// The workers of a pool that have the same stack.
    public struct WorkerGroup: Codable, Sendable, Equatable {
        /// The index of the stack in ``StallReport/stacks``; `nil` for workers whose stacks could not be captured.
        public var stack: Int?
        /// The worker threads.
        public var threads: [ThreadDescription]

        package init(stack: Int?, threads: [ThreadDescription]) {
            self.stack = stack
            self.threads = threads
        }
    }

    /// A thread other than the loop's, captured once, right after the first sample.
    public struct OtherThread: Codable, Sendable, Equatable {
        /// The captured thread.
        public var thread: ThreadDescription
        /// The index of the stack in ``StallReport/stacks``; `nil` if it could not be captured.
        public var stack: Int?
        /// The reason why the stack is missing or incomplete; `nil` if it is complete.
        package var reason: String?
        /// The reason of a thread that has ended before it was captured.
        package static let ended = "the thread has ended"
        package var threadState: ThreadState?
        package var method: CaptureMethod?
        /// The time for which the capture kept the thread from running, in microseconds.
        package var heldMicroseconds: Double = 0
        /// The system call in which the thread was blocked; `nil` if it was in none, or the system does not show it.
        package var systemCall: SystemCall?
        /// The lock that it waited for, with at most one owner, whose stack is in its own entry; `nil` for none.
        package var lock: Lock?
    }

    /// One frame of a stack.
    ///
    /// The image's build ID and the offset identify the place permanently, whatever addresses the process had.
    public struct Frame: Codable, Sendable, Hashable {
        /// The index of the image in ``StallReport/images``; `nil` if the address is in none.
        public var image: Int?
        /// The virtual address in the image's file; without an image, the address in the process.
        public var offset: Address
        /// The function's demangled name; `nil` if unknown.
        public var function: String?
        /// The symbol: the mangled name; `nil` if unknown.
        public var symbol: String?
        /// The path of the source file, as the compiler recorded it; `nil` if unknown.
        public var file: String?
        /// The line in ``file``, from 1; `nil` if unknown.
        ///
        /// For compiler-generated code without a line, the preceding line of the same function, else the line of its
        /// declaration.
        public var line: Int?
        /// The column in the line, from 1; `nil` if unknown.
        package var column: Int?
        /// Whether the function is inlined into the next frame's, which has the same image and offset; `nil` means no.
        package var isInlined: Bool?
        /// Whether the function left no frame; `nil` means no.
        ///
        /// The call in the next frame names it, but it had gone on by a jump into the frame before: it ended in a call, or
        /// its code is shared with another function. ``offset`` is its first address, and ``line`` that of its declaration.
        package var isTailCall: Bool?
        /// Whether it may not be on the stack, because it or a frame further in is a guess (no unwind information), or may
        /// not call the frame before it (frames left out); `nil` means no.
        package var isUncertain: Bool?
        /// Whether the code belongs to the app: to the root package.
        public var isInApp: Bool
        /// True for code of a package that the app depends on, or of a library that was compiled elsewhere and linked in.
        package var isDependency: Bool?
        /// True for a frame that only passes a call on (a thunk, the run loop's own): readers may fold it.
        package var isRuntimeFrame: Bool?
        /// What the compiler made the function for, which is then never blamed; `nil` for a function that was written.
        package var compilerGenerated: GeneratedCode?
        /// The reason why the name or line is missing, unless the image has the reason.
        package var reason: String?
        package var kind: FrameKind
        /// Whether the frame is its task's last async caller, for which later frames do not wait; `nil` means no.
        package var isTaskStart: Bool?
    }

    /// An ELF file that is mapped into the process.
    public struct Image: Codable, Sendable, Hashable {
        /// The file's name without its directories.
        public var name: String
        /// The file's path.
        public var path: String
        /// The build ID in hexadecimal; `nil` if the file has none.
        public var buildID: String?
        /// Of an image without a build ID, a hash of its beginnings as they were in memory, in 16 hexadecimal digits.
        package var contentHash: String?
        /// The address in the process of the file's virtual address 0.
        package var baseAddress: Address
        /// Whether the image is the app's: the executable, or a library outside the system's and toolchain's
        /// directories; `nil` if unknown.
        package var isInApp: Bool?
        /// The reason why names or lines of the image's frames are missing; `nil` if none are.
        package var reason: String?
    }

    /// Returns the names of a sample's functions, innermost first.
    ///
    /// For a frame without a name, the image's name and the offset take its place.
    ///
    /// - Parameter sample: A sample of this report.
    /// - Returns: One name for each frame; an empty array if the sample has no stack.
    public func functionNames(of sample: Sample) -> [String] {
        guard let stack = sample.stack, stacks.indices.contains(stack) else { return [] }
        return stacks[stack].map { index in
            frames.indices.contains(index) ? name(of: frames[index]) : "?"
        }
    }

    /// Returns the frames that are proven to be on a stack, innermost first.
    ///
    /// The stack's index must be valid.
    package func provenFrames(ofStack stack: Int) -> [Frame] {
        stacks[stack].filter { frames.indices.contains($0) }.lazy.map { frames[$0] }.filter { $0.isUncertain != true }
    }

    /// Whether the owner is a thread of libdispatch in its wait for work, which the worker itself calls, with a time limit.
    func isIdle(_ owner: LockOwner) -> Bool {
        guard !owner.isRunning, let stack = owner.stack, stacks.indices.contains(stack) else { return false }
        let symbols = provenFrames(ofStack: stack).map { $0.symbol ?? "" }
        guard let worker = symbols.firstIndex(of: "_dispatch_worker_thread"), worker > 0,
            symbols[..<worker].contains("_dispatch_sema4_timedwait")
        else { return false }
        return ["dispatch_semaphore_wait", "_dispatch_semaphore_wait_slow"].contains(symbols[worker - 1])
    }

    /// The app's innermost function on an owner's stack, with its line; `nil` if it is not known.
    func place(of owner: LockOwner) -> String? { frame(of: owner)?.place }

    /// The app's innermost frame on an owner's stack that has a name; `nil` if there is none.
    package func frame(of owner: LockOwner) -> Frame? { frame(ofStack: owner.stack) }

    /// The app's innermost frame on a stack that has a name; `nil` if there is none.
    func frame(ofStack stack: Int?) -> Frame? {
        guard let stack, stacks.indices.contains(stack) else { return nil }
        return provenFrames(ofStack: stack).first(where: \.isPlaceOfApp)
    }

    /// The app's frame in which the thread was for most of the time in which it was blocked; `nil` if that is not known.
    var longestWait: Frame? {
        let shares = stackShares { $0.threadState == .blocked }
        guard let cause, let longest = Self.largest(of: shares),
            longest.value * durationMilliseconds > cause.blockedMilliseconds / 2
        else { return nil }
        // Functions outside of the turn run the loop, and are on each of its stacks.
        return provenFrames(ofStack: longest.key).turn.first(where: \.isPlaceOfApp)
    }

    /// The app's innermost function of the stack that was on a CPU for the longest time; `nil` if none was.
    var longestRun: Frame? {
        let running = Self.largest(of: stackShares { $0.threadState == .running })
        return running.flatMap { provenFrames(ofStack: $0.key).turn.first(where: \.isPlaceOfApp) }
    }

    /// The frames of the wait that the cause shows: of the largest stack that may be its; empty if there is none.
    ///
    /// Another wait may have a larger one. A lock without a known function is one that calls futex(2) by `syscall`.
    var framesOfWait: [Frame] {
        let function = cause?.lock.map { $0.function ?? "syscall" }
        let shares = stackShares { $0.threadState == .blocked }.filter { stack, _ in
            guard let function else { return true }
            return provenFrames(ofStack: stack).prefix { !$0.isInApp }.contains { $0.isOfC(function) }
        }
        return Self.largest(of: shares).map { provenFrames(ofStack: $0.key) } ?? []
    }

    /// A function with its line, where that is known: `save() (Store.swift:12)`.
    static func place(_ function: String, _ file: String?, _ line: Int?) -> String {
        file.map { "\(function) (\(sourcePlace($0, line)))" } ?? function
    }

    /// The name of a frame's function, or else of its image with the offset.
    package func name(of frame: Frame) -> String {
        if let function = frame.function { return function }
        guard let image = frame.image, images.indices.contains(image) else { return "\(frame.offset)" }
        return "\(images[image].name)+\(frame.offset)"
    }
}

extension StallReport.Sample {
    package init(atMilliseconds: Double, isValid: Bool, isComplete: Bool) {
        (self.atMilliseconds, self.isValid, self.isComplete) = (atMilliseconds, isValid, isComplete)
    }
}

extension StallReport.OtherThread {
    package init(thread: StallReport.ThreadDescription) { self.thread = thread }
}

extension StallReport.Image {
    package init(
        name: String, path: String, buildID: String?, contentHash: String? = nil, baseAddress: StallReport.Address,
        isInApp: Bool
    ) {
        (self.name, self.path, self.buildID, self.baseAddress) = (name, path, buildID, baseAddress)
        (self.contentHash, self.isInApp) = (contentHash, isInApp)
    }
}

extension StallReport.Frame {
    package init(
        image: Int? = nil, offset: StallReport.Address, function: String? = nil, symbol: String? = nil,
        file: String? = nil,
        line: Int? = nil, isInApp: Bool, kind: StallReport.FrameKind
    ) {
        (self.image, self.offset, self.file) = (image, offset, file)
        (self.function, self.symbol) = (function.map(StallReport.bounded), symbol.map(StallReport.bounded))
        (self.line, self.isInApp, self.kind) = (line, isInApp, kind)
    }

    /// The function with its line, where that is known; `nil` if the function is not.
    var place: String? { function.map { StallReport.place($0, file, line) } }

    /// The function, without the version of a C function's symbol.
    var plainName: String? {
        symbol?.hasPrefix("$") == true ? function : function.map { String($0.prefix { $0 != "@" }) }
    }

    /// Whether it is the C function of that name: libraries also have it under names that begin with underscores.
    func isOfC(_ name: String) -> Bool { plainName.map { $0.drop { $0 == "_" } == name } ?? false }

    var isPlaceOfApp: Bool { isInApp && function != nil && isWritten }

    /// Whether the function may be in the source: it is neither a runtime frame nor made by the compiler.
    package var isWritten: Bool { isRuntimeFrame != true && compilerGenerated == nil }
}

extension Sequence<StallReport.Frame> {
    /// The function that is around a closure and called it, of the frames outward of the closure; `nil` if none is.
    package func function(around closure: String) -> StallReport.Frame? {
        guard closure.hasPrefix("closure #") else { return nil }
        // What runs the turn has not called it.
        let turn = drop { $0.function != closure }.prefix {
            StallReport.Callout(symbol: $0.symbol) == nil && !$0.runsLoop
        }
        return turn.first { frame in
            frame.isInApp && frame.isUncertain != true && frame.function.map { closure.hasSuffix(" in \($0)") } == true
        }
    }
}

extension StallReport {
    /// The share of the stall's duration that each stack of the stalled turn stands for, by the stack's index.
    package var stackShares: [Int: Double] { stackShares { _ in true } }

    func stackShares(where isCounted: (Sample) -> Bool) -> [Int: Double] {
        zip(samples, sampleShares).reduce(into: [:]) { shares, part in
            if part.0.isValid, isCounted(part.0), let stack = part.0.stack { shares[stack, default: 0] += part.1 }
        }
    }

    /// The stack with the most time, of those with the culprit's line or at least the culprit if it is on one, and its share
    /// of the stall's duration.
    ///
    /// `nil` without a stack of the stalled turn.
    package var culpritStack: (index: Int, share: Double)? {
        let shares = stackShares
        let blamed = shares.filter { stack, _ in
            culprit.map { culprit in stacks[stack].contains { frames[$0].function == culprit.function } } ?? false
        }
        let atLine = blamed.filter { stack, _ in
            stacks[stack].first { frames[$0].function == culprit?.function }.flatMap { frames[$0].line }
                == culprit?.line
        }
        let best = [atLine, blamed, shares].first { !$0.isEmpty } ?? shares
        return Self.largest(of: best).map { ($0.key, $0.value) }
    }

    /// The app's function that handles a signal, with its line, and what the signal interrupted, if the culprit was called by
    /// such a handler for half of the time or more.
    package var signalHandler: (place: String?, interrupted: String?)? {
        guard let culprit = culprit?.function, let most = culpritStack else { return nil }
        func signal(in frames: [Frame]) -> Int? {
            frames.firstIndex { $0.function == culprit }.flatMap { place in
                frames[place...].firstIndex { $0.kind == .signal }
            }
        }
        let shares = stackShares.filter { signal(in: provenFrames(ofStack: $0.key)) != nil }
        let frames = provenFrames(ofStack: most.index)
        guard shares.values.reduce(0, +) >= 0.5, let call = signal(in: frames) else { return nil }
        // A suspended function did not run.
        func isPlace(_ frame: Frame) -> Bool {
            frame.isPlaceOfApp && frame.kind != .asyncCaller
        }
        return (frames[..<call].last(where: isPlace)?.place, frames[call...].first(where: isPlace)?.place)
    }

    /// The largest share with its stack, the first of equal ones; `nil` without any.
    static func largest(of shares: [Int: Double]) -> (key: Int, value: Double)? {
        shares.max { ($0.value, $1.key) < ($1.value, $0.key) }
    }

    /// The share of the stall's duration that each sample stands for; the shares add up to 1, or are all 0.
    ///
    /// Reports of versions that did not measure it have none. There, each moment counts for the nearest sample, and
    /// samples that may show a later turn count only if there is no other.
    package var sampleShares: [Double] {
        let known = samples.map { $0.weightMilliseconds ?? 0 }
        let total = known.reduce(0, +)
        if total > 0 { return known.map { $0 / total } }
        let valid = samples.indices.filter { samples[$0].isValid }
        let counted = valid.isEmpty ? Array(samples.indices) : valid
        let times = counted.map { min(samples[$0].atMilliseconds, durationMilliseconds) }
        let ends = zip(times, times.dropFirst()).map { ($0 + $1) / 2 } + [durationMilliseconds]
        var shares = [Double](repeating: 0, count: samples.count)
        guard durationMilliseconds > 0 else {
            for index in counted { shares[index] = 1 / Double(counted.count) }
            return shares
        }
        var begin = 0.0
        for (index, end) in zip(counted, ends) where end > begin {
            shares[index] = (end - begin) / durationMilliseconds
            begin = end
        }
        return shares
    }
}

extension StallReport {
    /// The system calls in which a run loop, or another loop of events, waits for its descriptors.
    package static let loopWaits: Set<String> = ["poll", "ppoll", "epoll_wait", "epoll_pwait"]
}

extension StallReport.Frame {
    fileprivate var isWaitUntilExit: Bool { symbol?.hasPrefix("$s10Foundation7ProcessC13waitUntilExit") == true }
}

extension StallReport.Frame {
    /// Whether it is a function of GLib, libuv, Qt, libevent or libev that runs a loop, which the app's `main` calls.
    var runsLoop: Bool { symbol.map(Self.loops.contains) == true }

    private static let loops: Set<String> = [
        "g_main_context_dispatch", "g_main_context_iteration", "g_main_loop_run", "g_application_run", "uv_run",
        "_ZN10QEventLoop4execE6QFlagsINS_17ProcessEventsFlagEE", "event_base_loop", "ev_run",
    ]
}

extension [StallReport.Frame] {
    /// The index of the frame that has called the turn's functions, of a stack from the innermost frame outward.
    ///
    /// `nil` if there is none.
    var loopIndex: Int? {
        // The app's code may run another loop, such as that of a dialog or of a call, and wait in it.
        firstIndex { StallReport.Callout(symbol: $0.symbol) != nil } ?? lastIndex { $0.runsLoop }
    }

    /// The frames that the turn runs, and the async functions that wait for it: how the loop was reached has not
    /// stalled.
    package var turn: [StallReport.Frame] {
        guard let loop = loopIndex else { return self }
        return self[..<loop] + self[loop...].filter { $0.kind == .asyncCaller }
    }
}

extension Collection<StallReport.Frame> {
    /// Whether the frames, from the innermost outward, run the thread's loop until a process ends, in
    /// `Process.waitUntilExit()`: what that loop has called waits for something else.
    var awaitProcess: Bool {
        first { $0.isWaitUntilExit || StallReport.Callout(symbol: $0.symbol) != nil }?.isWaitUntilExit == true
    }
}
