package import StallReports

extension StallReport {
    /// The function to blame for a stall, or the reason why there is none.
    package enum Blame: Equatable {
        case culprit(Culprit)
        case none(String)

        fileprivate var line: Int? {
            if case .culprit(let culprit) = self { culprit.line } else { nil }
        }
    }

    /// The function that a developer should look at first.
    ///
    /// The rule: on the stack that explains most of the time (``dominantStack``), going outwards from the innermost
    /// frame as far as the run loop's callout, the first frame that is the app's own, has a name and a line, and was
    /// not made by the compiler. Inlined functions count as if they had been called, and callers that wait in an async
    /// function come after everything that runs on the thread on its behalf. A function that left no frame, because it
    /// ended in a jump, needs no line.
    ///
    /// Where none of the app's code is on the stack, the outermost function of a dependency is blamed: that is what a
    /// dependency was asked to do. The modules that run event loops come last: they are on every stack of a loop. A frame
    /// that may be the app's but has no name ends the search, because a function further out is not the one that stalls.
    ///
    /// A frame that may not be on the stack is never blamed.
    package static func blame(for frames: [Frame], images: [Image]) -> Blame {
        let proven = frames.filter { $0.isUncertain != true }
        let isCut = frames.last?.isUncertain == true
        let blame = blame(onStack: proven.turn, images, isCut: isCut)
        guard isCut, case .none = blame, case .culprit(let guess) = Self.blame(onStack: frames.turn, images) else {
            return blame
        }
        return .none("the stack is a guess where unwind information is missing: \(guess.function) is likely")
    }

    /// If the stack is cut, which one of a dependency's functions is the outermost is not known.
    private static func blame(onStack stack: [Frame], _ images: [Image], isCut: Bool = false) -> Blame {
        if let unknown = stack.firstIndex(where: { mayBeApps($0, images) }) {
            let own = withoutEvaluation(stack[..<unknown].filter(\.isInApp))
            guard let frame = candidate(in: own, images) else { return .none(nameIsMissing(stack[unknown], images)) }
            return .culprit(Culprit(frame, images))
        }
        let own = stack.filter(\.isInApp)
        let callers = withoutReleases(stack).filter(\.isInApp)
        if let frame = candidate(in: withoutEvaluation(callers), images)
            ?? candidate(in: withoutEvaluation(own), images)
        {
            return .culprit(Culprit(frame, images))
        }
        let dependencies = isCut ? [] : stack.filter { $0.isDependency == true }.reversed()
        let called = dependencies.filter { !isIn(eventLoopModules, $0) }
        let asked = called.filter { !isIn(handlerModules, $0) }
        if let frame = candidate(in: asked, images) ?? candidate(in: called, images)
            ?? candidate(in: dependencies, images)
        {
            return .culprit(Culprit(frame, images))
        }
        // The body of an async let is an autoclosure, and its task has no caller.
        if let frame = own.first(where: { writer(of: $0) != nil }), let function = writer(of: frame) {
            let image = frame.image.map { images[$0].name }
            return .culprit(Culprit(function: function, image: image, file: nil, line: nil))
        }
        if let frame = stack.first(where: { claimsToBeOfToolchain($0, images) }) {
            return .none(nameIsToolchains(frame))
        }
        let isGenerated = own.contains { $0.compilerGenerated != nil }
        let generated = "the compiler made all of the app's functions on the stack"
        return .none(isGenerated ? generated : noFunctionOfApp)
    }

    package static let noFunctionOfApp = "no function of the app is on the stack"

    package static func culprit(of frames: [Frame], images: [Image]) -> Culprit? {
        guard case .culprit(let culprit) = blame(for: frames, images: images) else { return nil }
        return culprit
    }

    /// The modules of SwiftNIO that run an event loop and pass its events through a channel's pipeline.
    private static let eventLoopModules: Set<String> = ["NIOPosix", "NIOCore"]
    /// The modules whose handlers pass the events of nearly every channel on.
    private static let handlerModules: Set<String> = [
        "NIOSSL", "NIOTLS", "NIOHTTP1", "NIOHTTP2", "NIOWebSocket", "NIOExtras",
    ]

    private static func isIn(_ modules: Set<String>, _ frame: Frame) -> Bool {
        frame.symbol.flatMap(SwiftModule.of).map(modules.contains) == true
    }

    private static func candidate(in frames: some Collection<Frame>, _ images: [Image]) -> Frame? {
        let written = frames.lazy.filter { $0.function != nil && ($0.isWritten || standsForClosure($0, images)) }
        let found = written.first { $0.line != nil || $0.isTailCall == true || !isLineExpected($0, images) }
        // Without any line on the stack, lines were not asked for.
        return found ?? (frames.contains { $0.line != nil } ? nil : written.first)
    }

    /// Whether the function is the only one that is left of a closure, where the symbols do not show what was moved into it.
    private static func standsForClosure(_ frame: Frame, _ images: [Image]) -> Bool {
        !isLineExpected(frame, images) && frame.line == nil && Fingerprint.forwardsClosure(frame)
    }

    /// Returns the frames without the deinitializers that the runtime calls only to release an object's members: the
    /// function that has released the graph is the one to blame.
    private static func withoutReleases(_ frames: [Frame]) -> [Frame] {
        guard frames.contains(where: isDeinitializer) else { return frames }
        var isReleasing = false
        return frames.filter { frame in
            let symbol = frame.symbol ?? ""
            if frame.compilerGenerated == .outlined || frame.compilerGenerated == .metadata { return true }
            if RuntimeLibrary(symbol: symbol) == .swift || symbol.hasPrefix("__swift_destroy") {
                // swift_release, swift_deallocClassInstance, swift_arrayDestroy and what they call, and the compiler's
                // __swift_destroy_boxed_opaque_existential_0.
                isReleasing = isReleasing || ["elease", "ealloc", "estroy"].contains { symbol.contains($0) }
            } else if !isDeinitializer(frame) {
                isReleasing = false
            }
            return !(isReleasing && frame.isInApp)
        }
    }

    /// Whether a function is `deinit` or a deallocating deinitializer, also a specialized or a merged one.
    private static func isDeinitializer(_ frame: Frame) -> Bool {
        [".deinit", ".__deallocating_deinit"].contains { frame.function?.hasSuffix($0) == true }
    }

    /// Returns the app's frames, without those that evaluate the autoclosure that the innermost function of a source
    /// is: it has no line, so the function around it is to blame.
    private static func withoutEvaluation(_ frames: [Frame]) -> [Frame] {
        let isWritten = { (frame: Frame) in
            frame.isRuntimeFrame != true && (frame.compilerGenerated == nil || writer(of: frame) != nil)
        }
        guard let innermost = frames.first(where: isWritten), innermost.line == nil, let writer = writer(of: innermost),
            let index = frames.firstIndex(where: {
                $0.line != nil && [writer, "specialized " + writer].contains($0.function)
            })
        else { return frames }
        return Array(frames[index...])
    }

    private static func writer(of frame: Frame) -> String? {
        frame.function.flatMap(GeneratedCode.function(withAutoclosure:))
    }

    /// Whether a frame without a line is code that stands for no line.
    private static func isLineExpected(_ frame: Frame, _ images: [Image]) -> Bool {
        let image = frame.image.map { images[$0] }
        return image?.reason == nil
            && (frame.reason == nil || frame.reason == DebugInformation.UnavailableReason.notCovered.reason)
    }

    /// Whether the frame is in an image of the app's and without a name, because names are missing or time was short.
    private static func mayBeApps(_ frame: Frame, _ images: [Image]) -> Bool {
        frame.isInApp && frame.function == nil && frame.image != nil && !isLineExpected(frame, images)
    }

    /// Whether the frame's module is named like one of the toolchain's, but has lines, so it is the app's.
    private static func claimsToBeOfToolchain(_ frame: Frame, _ images: [Image]) -> Bool {
        guard !frame.isInApp, frame.isDependency != true, frame.compilerGenerated == nil, frame.line != nil,
            let file = frame.file, file.hasPrefix("/"), frame.image.map({ images[$0].isInApp == true }) == true,
            let module = frame.symbol.flatMap(SwiftModule.of)
        else { return false }
        return SwiftModule.ofToolchain.contains(module) && !FunctionClassifier.isOfSystem(file)
    }

    private static func nameIsToolchains(_ frame: Frame) -> String {
        let module = frame.symbol.flatMap(SwiftModule.of) ?? "?"
        return "the module of \(frame.function ?? "?") is named \(module), like one of the Swift toolchain's: "
            + "if it is the app's, add it to InApp.includedModules"
    }

    private static func nameIsMissing(_ frame: Frame, _ images: [Image]) -> String {
        let image = frame.image.map { images[$0] }
        let reason = image?.reason ?? frame.reason ?? "no name was found"
        return "the function at \(image?.name ?? "?")+\(frame.offset) is not known: \(reason)"
    }
}

extension StallReport.Culprit {
    fileprivate init(_ frame: StallReport.Frame, _ images: [StallReport.Image]) {
        self.init(
            // Only frames with a name are candidates.
            function: frame.function ?? "", image: frame.image.map { images[$0].name }, file: frame.file,
            line: frame.line, returnsValue: frame.symbol.flatMap(Demangler.returnsValue) == true ? true : nil
        )
    }
}

extension StallReport {
    package struct DominantStack {
        package var stack: Int
        package var blame: Blame
        /// The share of the stall's duration that stacks with the same function to blame, or a closure of it, stand for, 0 to 1.
        package var share: Double
    }

    /// The stack that explains the largest part of the stall; `nil` without a stack of the stalled turn.
    ///
    /// Stacks whose function to blame is the same count together: its callees and lines may differ. Of these stacks, it is
    /// the one that stands for the most time at the function's line that has the most. Of equal ones, the one with the
    /// lowest index.
    ///
    /// The report's indices must be valid.
    package var dominantStack: DominantStack? {
        var shares = stackShares
        if activity != nil {
            // Between two callouts, a saturated or spinning loop shows only the function that runs it.
            var (calling, own): ([Int: Double], [Int: Double]) = ([:], [:])
            for (stack, share) in shares {
                let frames = provenFrames(ofStack: stack)
                let called = frames.prefix { Callout(symbol: $0.symbol) == nil }
                // The monitor's own observers are called, too.
                guard called.count < frames.count, called.last?.symbol.flatMap(SwiftModule.of) != "StallWatch"
                else { continue }
                calling[stack] = share
                if called.contains(where: { $0.isInApp && $0.function != nil }) { own[stack] = share }
            }
            // Libraries' frames in the callout do not show which code of the app they serve.
            if kind == .spinning, !own.isEmpty { calling = own }
            if kind != .modeStarvation, !calling.isEmpty || kind == .spinning && activity?.isModeEmpty != true {
                shares = calling
            }
        }
        let blamed = shares.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { stack, share in
            DominantStack(
                stack: stack, blame: Self.blame(for: relevantFrames(ofStack: stack), images: images), share: share)
        }
        guard var most = Self.largest(ofGroups: blamed) else { return nil }
        // The time of its closures is that of the lines that call them.
        func whole(_ function: DominantStack) -> DominantStack? {
            Self.largest(ofGroups: blamed.compactMap { inFunction(Place(function.blame), $0) })
        }
        most = whole(most) ?? most
        let all = blamed.reduce(0) { $0 + $1.share }
        // What a function does itself, in its closures and in what it calls may be one half only together.
        guard most.share < all / 2, let around = Self.largest(ofGroups: blamed.map { inFunctionAroundClosure($0) }),
            around.share > most.share
        else { return most }
        return whole(around) ?? around
    }

    /// Returns the group with the largest share, of stacks in the order of theirs.
    private static func largest(ofGroups stacks: [DominantStack]) -> DominantStack? {
        var groups: [Place: [Int?: DominantStack]] = [:]
        for stack in stacks {
            var first = stack
            first.share = 0
            groups[Place(stack.blame), default: [:]][stack.blame.line, default: first].share += stack.share
        }
        func largest(_ stacks: some Sequence<DominantStack>) -> DominantStack? {
            stacks.max { ($0.share, $1.stack) < ($1.share, $0.stack) }
        }
        let places = groups.values.compactMap { lines -> DominantStack? in
            var most = largest(lines.values)
            most?.share = lines.values.reduce(0) { $0 + $1.share }
            return most
        }
        return largest(places)
    }

    /// The same stack, for which the function is to blame; `nil` if its blame is neither the function's nor of a closure in it.
    private func inFunction(_ function: Place, _ stack: DominantStack) -> DominantStack? {
        var stack = stack
        while Place(stack.blame) != function {
            let around = inFunctionAroundClosure(stack)
            if Place(around.blame) == Place(stack.blame) { return nil }
            stack = around
        }
        return stack
    }

    /// The same stack, for which the function is to blame that is around the blamed closure and called it.
    private func inFunctionAroundClosure(_ dominant: DominantStack) -> DominantStack {
        guard case .culprit(let culprit) = dominant.blame,
            let around = provenFrames(ofStack: dominant.stack).function(around: culprit.function)
        else { return dominant }
        return DominantStack(
            stack: dominant.stack, blame: .culprit(Culprit(around, images)), share: dominant.share)
    }

    /// Whether the thread computes in Swift's wait for a global that is being initialized, as its dominant stack shows.
    ///
    /// Such a wait takes a CPU only if the kernel refuses it, because it would close a circle (EDEADLK of futex(2)): the runtime
    /// then tries again for ever. That is a global whose initializer needs the global itself, through another one, or a lock
    /// that this thread holds: Swift's `Mutex` waits in the same way.
    func waitsForItsOwnGlobal(inStack stack: Int) -> Bool {
        guard let cause, cause.kind == .cpu, (cause.kernelShare ?? 0) >= 0.5 else { return false }
        let symbols = stacks[stack].lazy.map { frames[$0].symbol ?? "" }
        // libc's function makes the call.
        let waiting = symbols.first { $0.prefix { $0 != "@" } != "syscall" }
        return waiting?.hasPrefix("_ZN5swift14threading_impl9once_slow") == true
    }

    /// The frames of a stack, innermost first; if a mode starves, those that run the loop in the other mode, because it
    /// does not matter what the loop does there.
    package func relevantFrames(ofStack stack: Int) -> [Frame] {
        let all = stacks[stack].map { frames[$0] }
        guard kind == .modeStarvation, let run = all.firstIndex(where: { $0.symbol == "CFRunLoopRunSpecific" })
        else { return all }
        return Array(all[(run + 1)...])
    }

    /// What stacks with the same function to blame have in common.
    private struct Place: Hashable {
        var function: String?
        var image: String?
        var file: String?

        init(_ blame: Blame) {
            guard case .culprit(let culprit) = blame else { return }
            (function, image, file) = (culprit.function, culprit.image, culprit.file)
        }
    }

    /// The functions in the stack of every libdispatch worker, including the workers of Swift's cooperative pool.
    package static let workerFunctions: Set<String> = ["_dispatch_worker_thread", "_dispatch_root_queue_drain"]

    /// Leaves out the workers of a task pool that run no task, if the symbols of any show that it runs one: libdispatch gives
    /// threads to blocks and serial queues, too, also to those that are executors.
    package static func ofTaskPool<Worker>(_ workers: [Worker], symbols: (Worker) -> [String?]) -> [Worker] {
        let running = workers.filter { worker in
            let symbols = symbols(worker).compactMap(\.self)
            return symbols.contains(where: runsTask) && !symbols.contains { $0.hasPrefix("_dispatch_lane_") }
        }
        return running.isEmpty ? workers : running
    }

    /// Whether a symbol is of one of the runtime's functions that run a task on a thread.
    private static func runsTask(_ symbol: String) -> Bool {
        symbol.containsBytes(of: "swift_job_run") || symbol.containsBytes(of: "runJobInEstablishedExecutorContext")
    }

    /// Orders the workers of each sample of a pool by what they tell, and leaves out threads that are no workers.
    ///
    /// Groups with in-app frames come first, larger groups before smaller ones: idle workers are often more, but they delay
    /// no work. The first group's stack is the sample's. Without the names of libdispatch's functions, a worker is a thread
    /// that the library has started. If it is part of a stripped executable, every thread may be a worker.
    package mutating func sortWorkers() {
        for index in samples.indices {
            guard let groups = samples[index].workers, !groups.isEmpty else { continue }
            var workers = groups.filter { frames(of: $0).contains(where: Self.isOfWorker) }
            if workers.isEmpty { workers = groups.filter(isStartedByDispatch) }
            if loop.kind == .cooperativePool {
                workers = Self.ofTaskPool(workers) { frames(of: $0).map(\.symbol) }
            }
            let sorted = (workers.isEmpty ? groups : workers).sorted { first, second in
                let (isFirstBusy, isSecondBusy) = (isBusy(first), isBusy(second))
                return isFirstBusy == isSecondBusy ? first.threads.count > second.threads.count : isFirstBusy
            }
            samples[index].workers = sorted
            samples[index].stack = sorted.first?.stack
        }
    }

    private func frames(of group: WorkerGroup) -> [Frame] { group.stack.map { stacks[$0].map { frames[$0] } } ?? [] }

    private func isBusy(_ group: WorkerGroup) -> Bool {
        frames(of: group).contains { frame in
            // A library may be linked into the executable.
            frame.isInApp && frame.symbol.map(RuntimeLibrary.contains) != true
        }
    }

    /// Whether the outermost function outside of the C library is one of libdispatch.
    private func isStartedByDispatch(_ group: WorkerGroup) -> Bool {
        let names = frames(of: group).lazy.reversed().map { $0.image.map { self.images[$0].name } ?? "" }
        return names.first { !$0.hasPrefix("libc.so") && !$0.hasPrefix("libpthread") } == "libdispatch.so"
    }

    private static func isOfWorker(_ frame: Frame) -> Bool { frame.symbol.map(workerFunctions.contains) ?? false }
}
