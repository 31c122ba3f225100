package import LinuxSupport
package import StallReports

/// Names the frames of a report, new or years old, and derives the callout and the culprit from the names.
package struct ReportSymbolication {
    package let symbolicator: any Symbolicating
    let functions: FunctionClassifier
    /// The path of this process's executable, if the report is this process's.
    let ownExecutable: String?
    /// The time for names and lines until the report is written as it is, in nanoseconds.
    package let timeLimit: UInt64
    /// The time limit for the whole work, in nanoseconds.
    package let timeout: UInt64

    /// 30 s: a gigabyte of debug information takes less, and a stuck disk more.
    static let inProcessTimeout: UInt64 = 30_000_000_000

    package static func inProcess(_ settings: SymbolicationSettings, inApp: InAppSettings) -> ReportSymbolication {
        ReportSymbolication(
            symbolicator: Symbolicator(settings), functions: FunctionClassifier(inApp),
            ownExecutable: OwnExecutable.path, timeLimit: nanoseconds(settings.timeLimit), timeout: inProcessTimeout)
    }

    /// Returns the report with the names and lines that are found; `whenLate` takes it unfinished at the time limit.
    package func symbolicate(_ report: StallReport, whenLate: (StallReport) -> Void) -> StallReport {
        let start = monotonicNow()
        let (inTime, isFinished) = symbolicate(report, deadline: start &+ timeLimit)
        if isFinished { return inTime }
        whenLate(inTime)
        return symbolicate(report, deadline: start &+ max(timeout, timeLimit)).report
    }

    /// Returns the report with the names and lines that are found until a deadline, in monotonic nanoseconds.
    package func symbolicate(_ report: StallReport, until deadline: UInt64) -> StallReport {
        symbolicate(report, deadline: deadline).report
    }

    private func symbolicate(
        _ report: StallReport, deadline: UInt64
    ) -> (report: StallReport, isFinished: Bool) {
        var pass = Pass(symbolication: self, report: report, deadline: deadline)
        let stacks = report.stacks.map { pass.stack($0) }
        var result = report
        result.stacks = stacks
        result.frames = pass.frames
        result.sortWorkers()
        for index in result.images.indices {
            result.images[index].reason = symbolicator.reason(for: identity(of: result.images[index]))
        }
        if let dominant = result.dominantStack {
            if result.waitsForItsOwnGlobal(inStack: dominant.stack) {
                result.cause?.kind = .deadlock
                result.cause?.confidence = .likely
            }
            let symbols = result.relevantFrames(ofStack: dominant.stack).map(\.symbol)
            result.callout = report.callout ?? StallReport.Callout(symbols: symbols)
            switch dominant.blame {
            case .culprit(var culprit):
                culprit.share = dominant.share.toThousandths
                (result.culprit, result.missingCulpritReason) = (culprit, nil)
            case .none(var reason):
                let cut = result.samples.first { $0.stack == dominant.stack && !$0.isComplete }?.reason
                if let cut, reason == StallReport.noFunctionOfApp { reason += ", as far as it is known: \(cut)" }
                result.missingCulpritReason = report.culprit == nil ? reason : nil
            }
        } else if report.culprit == nil {
            let isLate = report.samples.contains { $0.stack != nil }
            result.missingCulpritReason =
                report.missingSamplesReason
                ?? (isLate && report.kind == .spinning
                    ? "no sample shows what the loop called"
                    : isLate ? "the turn had ended before a stack was captured" : "no sample has a stack")
        }
        result.nameCause(since: report)
        return (result, pass.isFinished)
    }

    private func identity(of image: StallReport.Image) -> ImageIdentity {
        ImageIdentity(
            path: image.path, buildID: image.buildID, contentHash: image.contentHash,
            isOwnExecutable: image.path == ownExecutable)
    }

    private struct Pass {
        let symbolication: ReportSymbolication
        let report: StallReport
        let deadline: UInt64
        var frames: [StallReport.Frame] = []
        var isFinished = true
        var indices: [StallReport.Frame: Int] = [:]
        /// The frames found for each of the report's frames: a frame may be on many stacks, or several times on one.
        var found: [Int: [Int]] = [:]

        /// Returns the stack with each frame looked up, as indices into ``frames``.
        mutating func stack(_ stack: [Int]) -> [Int] {
            var result: [Int] = []
            var inlined: [StallReport.Frame] = []
            var tailCall: StallReport.Frame?
            var callee: StallReport.Frame?
            var calleeStart = 0
            for index in stack {
                let frame = report.frames[index]
                if frame.isTailCall == true {
                    // Known from an earlier symbolication, which may have had more files.
                    tailCall = frame
                    continue
                }
                if frame.isInlined == true {
                    // Known from an earlier symbolication. Its function's frame, which follows, is looked up.
                    inlined.append(frame)
                    continue
                }
                if let callee, let last = result.last {
                    let (function, isFolded) =
                        self.tailCall(of: frame, to: callee, in: frames[last]) ?? (tailCall, false)
                    if isFolded { for place in calleeStart..<result.count { result[place] = merged(result[place]) } }
                    if let function {
                        let known = [tailCall, frame].compactMap(\.self)
                        result.append(keep(owned(function, as: judged(like: function, in: known))))
                    }
                }
                tailCall = nil
                // An async function is resumed and not called.
                callee = frame.kind == .code ? frame : nil
                calleeStart = result.count
                if let known = found[index] {
                    result += known
                } else if let locations = lookUp(frame, inlined) {
                    let added = add(locations)
                    found[index] = added
                    result += added
                } else {
                    result += (inlined + [frame]).map { keep($0) }
                }
                inlined.removeAll()
            }
            return result + inlined.map { keep($0) }
        }

        /// Returns the frame of a function that `frame` has called and that has jumped to `callee`; `nil` if there is none.
        ///
        /// It must be written in a source of the app or a dependency. `function` is the frame of the callee's function. If its
        /// code has been folded into the callee's, the callee's name may be wrong, too.
        private mutating func tailCall(
            of frame: StallReport.Frame, to callee: StallReport.Frame, in function: StallReport.Frame
        ) -> (frame: StallReport.Frame?, isFolded: Bool)? {
            guard frame.kind == .code, frame.isUncertain != true, callee.isUncertain != true, let number = frame.image,
                callee.image != nil, report.images.indices.contains(number),
                report.images[number].isInApp ?? frame.isInApp
            else { return nil }
            // A frame's offset is in its call, the byte before the return address.
            let found = symbolication.symbolicator.calledFunction(
                before: frame.offset.value &+ 1, inImage: number, of: report.images, to: function
            ) { symbolication.identity(of: $0) }
            guard let found else { return nil }
            let code = CalledFunction.Jumped(
                address: callee.image == found.image ? callee.offset.value : nil,
                symbol: function.symbol, isMerged: function.compilerGenerated == .merged
            )
            // Functions that no source has pass the call on. One of a source that was folded into another jumps to it, which
            // has not been called.
            for jumped in chain(from: found.function, in: found.image) {
                guard jumped.hasJumped(to: code) else { return nil }
                var isFolded = false
                if let result = tailCall(jumped, in: found.image, to: code, for: frame, isFolded: &isFolded) {
                    let leads = chain(from: jumped, in: found.image).contains { function in
                        code.address.map { function.destination?.contains($0) == true } ?? false
                    }
                    return (result, isFolded && leads)
                }
                if isFolded { return nil }
            }
            return nil
        }

        /// Returns a function and those that it leads to, each at once through the one before it.
        private func chain(from function: CalledFunction, in number: Int) -> some Sequence<CalledFunction> {
            let symbolicator = symbolication.symbolicator
            let identity = symbolication.identity(of: report.images[number])
            return sequence(first: function) { last in
                last.destination.flatMap { symbolicator.function(startingAt: $0.lowerBound, in: identity) }
            }.prefix(CalledFunction.maximumThunks)
        }

        /// Returns a function of the same module that has a declaration.
        ///
        /// The optimizer may have put a function that it folds far away from all others of its module, but not those that
        /// it leads to.
        private func sibling(
            of function: CalledFunction, _ code: CalledFunction.Jumped, in number: Int
        ) -> CodeLocation? {
            let identity = symbolication.identity(of: report.images[number])
            let places = [function.addresses, function.destination, code.address.map { $0..<$0 }].compactMap(\.self)
            return places.lazy.compactMap { place in
                var near = function
                near.addresses = place
                return symbolication.symbolicator.sibling(of: near, in: identity, deadline: deadline)
            }.first
        }

        /// Returns the frame of the function, which has jumped to `code`; `nil` if no source is known to have it.
        ///
        /// `isFolded`: it is in no debug information, as the optimizer leaves a function that it has folded.
        private mutating func tailCall(
            _ called: CalledFunction, in number: Int, to code: CalledFunction.Jumped, for frame: StallReport.Frame,
            isFolded: inout Bool
        ) -> StallReport.Frame? {
            let image = report.images[number]
            let identity = symbolication.identity(of: image)
            let answer = symbolication.symbolicator.lookUp(
                called.addresses.lowerBound, in: identity, deadline: deadline)
            if answer.isUnfinished { isFinished = false }
            guard !answer.isUnfinished, var location = answer.locations.last else { return nil }
            (location.symbol, location.file, location.line) = (called.symbol, location.declaration?.file, nil)
            let known = symbolication.functions[called.symbol]
            isFolded = location.isUnlisted && known.module != nil && known.compilerGenerated == nil
            var owner: CodeOwner?
            if location.declaration == nil {
                // The optimizer drops the declaration of a function that it folds or specializes for a closure.
                let isWritten = location.isUnlisted || known.name.hasPrefix("specialized ")
                let hasDebugInformation = location.isUnlisted || location.directory != nil
                guard known.module != nil, isWritten || !hasDebugInformation else { return nil }
                if hasDebugInformation {
                    owner = sibling(of: called, code, in: number).map { symbolication.functions.owner(of: $0) }
                    if owner == nil, monotonicNow() >= deadline { isFinished = false }
                    guard owner != nil else { return nil }
                }
                location.directory = nil
            }
            var result = named(frame, location, known, answer, in: image, number, isMerged: false)
            if let owner {
                result.isInApp = owner == .app
                result.isDependency = owner == .dependency ? true : nil
            }
            guard result.isInApp || result.isDependency == true, result.compilerGenerated == nil,
                result.isRuntimeFrame != true
            else { return nil }
            result.offset = .init(called.addresses.lowerBound)
            result.isTailCall = true
            return result
        }

        /// Returns the index of a frame of which the name may be another function's.
        private mutating func merged(_ index: Int) -> Int {
            var frame = frames[index]
            guard frame.compilerGenerated != .merged else { return index }
            if frame.isInlined != true { frame.function = frame.function.map { StallReport.bounded("merged " + $0) } }
            frame.compilerGenerated = .merged
            return keep(frame)
        }

        /// Adds the frames of an address that no other frame has.
        private mutating func add(_ locations: [StallReport.Frame]) -> [Int] {
            frames += locations
            return Array(frames.count - locations.count..<frames.count)
        }

        private mutating func keep(_ frame: StallReport.Frame) -> Int {
            if let known = indices[frame] { return known }
            frames.append(frame)
            indices[frame] = frames.count - 1
            return frames.count - 1
        }

        /// Returns the frames at the address of `frame`, innermost first; `nil` if nothing new is found.
        ///
        /// `inlined`: Those that the report already has.
        private mutating func lookUp(
            _ frame: StallReport.Frame, _ inlined: [StallReport.Frame]
        ) -> [StallReport.Frame]? {
            guard let number = frame.image, report.images.indices.contains(number) else { return nil }
            let image = report.images[number]
            let answer = symbolication.symbolicator.lookUp(
                frame.offset.value, in: symbolication.identity(of: image), deadline: deadline
            )
            if answer.isUnfinished { isFinished = false }
            let hasLine = answer.locations.contains { $0.file != nil }
            let hasName = answer.locations.contains { $0.symbol != nil }
            // A report without mangled names still has the functions' names.
            let isUnknown = frame.symbol == nil && frame.function == nil
            guard hasLine || (hasName && frame.file == nil) || isUnknown else { return nil }
            let functions = answer.locations.map { $0.symbol.map { symbolication.functions[$0] } }
            // A function inlined into a merged function may stand for the call of another one.
            let isMerged = functions.last??.compilerGenerated == .merged
            return zip(answer.locations, functions).map { location, function in
                let named = named(frame, location, function, answer, in: image, number, isMerged: isMerged)
                return owned(named, as: location.isInlined ? judged(like: named, in: inlined + [frame]) : frame)
            }
        }

        /// Returns the frame with the owner that the report gives `known`, if that has a name.
        ///
        /// The process knew the app's own rules. A later symbolication does not. A callout has its name
        /// before these rules are applied.
        private func owned(_ frame: StallReport.Frame, as known: StallReport.Frame?) -> StallReport.Frame {
            guard let known, known.function != nil, known.isRuntimeFrame != true else { return frame }
            var result = frame
            (result.isInApp, result.isDependency) = (known.isInApp, known.isDependency)
            return result
        }

        /// Returns the named frame of the same function, or else one of the same Swift module; `nil` without one.
        private func judged(like frame: StallReport.Frame, in known: [StallReport.Frame]) -> StallReport.Frame? {
            guard let symbol = frame.symbol else { return nil }
            let named = known.filter { $0.function != nil }
            if let same = named.first(where: { $0.symbol == symbol }) { return same }
            guard let module = SwiftModule.of(symbol) else { return nil }
            return named.last { $0.symbol.flatMap(SwiftModule.of) == module }
        }

        /// Returns whether the image has no debug information and does not belong to the executable.
        private func isForeign(_ image: StallReport.Image) -> Bool {
            let reason = symbolication.symbolicator.reason(for: symbolication.identity(of: image))
            return reason?.hasPrefix(DebugInformation.UnavailableReason.absent.reason) == true
                && InAppRule.isForeign(imageAt: image.path, executable: report.process.executable)
        }

        private func named(
            _ frame: StallReport.Frame, _ location: CodeLocation, _ function: FunctionClassifier.Function?,
            _ answer: ResolvedAddress, in image: StallReport.Image, _ number: Int, isMerged: Bool
        ) -> StallReport.Frame {
            let isAppsImage = image.isInApp ?? frame.isInApp
            let owner =
                isAppsImage
                ? symbolication.functions.owner(
                    of: location, isOutsideDebugInformation: answer.isOutsideDebugInformation,
                    isForeign: isForeign(image)) : .library
            // Code without a line in a source, in a function of the source: the line of the function's declaration.
            let isExpanded = location.file.map(isMacroExpansion) == true
            let declaration = location.declaration.flatMap { isMacroExpansion($0.file) ? nil : $0 }
            let place = location.line == nil || isExpanded ? declaration : nil
            var generated = isMerged ? .merged : function?.compilerGenerated
            if generated == nil, isExpanded, place == nil { generated = .macro }
            // Swift's compiler says so of closures, too: they have no name.
            // GCC says so of coroutines, whose code is the source's.
            if generated == nil, location.isArtificial, function?.module == nil, !location.hasLineOfItsOwn {
                generated = .synthesized
            }
            if generated == nil, location.line == nil, place == nil, location.directory != nil, function?.module != nil
            {
                generated = .synthesized
            }
            var named = StallReport.Frame(
                image: number, offset: frame.offset, function: function?.name, symbol: location.symbol,
                file: place?.file ?? location.file, line: place?.line ?? location.line, isInApp: owner == .app,
                kind: frame.kind)
            named.column = place == nil ? location.column : nil
            named.isInlined = location.isInlined ? true : nil
            named.isUncertain = frame.isUncertain
            named.isDependency = owner == .dependency ? true : nil
            let isEntry = location.line == nil && location.symbol.map(RuntimeFrame.asyncMain.contains) == true
            named.isRuntimeFrame = function?.isRuntimeFrame == true || isEntry ? true : nil
            named.compilerGenerated = generated
            named.reason = answer.reason
            named.isTaskStart = frame.isTaskStart
            return named
        }
    }
}

extension ProcessIdentity {
    /// The process that a report is about; `nil` if the report does not say enough.
    package init?(_ process: StallReport.ProcessDescription) {
        guard let startTicks = process.startTicks, let bootID = process.bootID else { return nil }
        self.init(
            pid: process.pid, startTicks: startTicks, pidNamespace: process.pidNamespace, bootID: bootID,
            host: process.hostname)
    }
}
