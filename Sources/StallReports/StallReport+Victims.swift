extension StallReport {
    /// What waited for a loop during a stall, as far as the looks at it show, and the operations in progress, which may
    /// not have needed it.
    ///
    /// What came after the last look is not known.
    package struct Victims: Codable, Sendable, Equatable {
        /// The number of timers that were due in the mode in which the loop ran, but for those whose callout went on.
        ///
        /// `nil` for other loops, and if it is not known.
        package var timers: Int?
        /// How late the timer is that waited longest, at the end of the stall or when the stalled turn ran it, in
        /// milliseconds; it may have been due before the stall.
        package var longestTimerDelayMilliseconds: Double?
        /// How often repeating timers did not fire during the stall because they were late; `nil` for never.
        package var skippedFirings: Int?
        /// The number of blocks, tasks and events in the main queue; `nil` for other loops, and if it is not known.
        ///
        /// If the callout is the main queue's, those that came before it began are not among them.
        package var mainQueueItems: Int?
        /// How long the first of these items waited at least, in milliseconds.
        package var longestItemWaitMilliseconds: Double?
        /// The number of operations with a limit that were in progress; `nil` for none.
        ///
        /// Whether they needed the loop is not known.
        package var operations: Int?
        /// Some of the operations' names, or of their contexts' labels.
        package var operationNames: [String]?
        /// The number of turns of a millisecond or more that followed the stalled one without a wait, up to 50 ms after
        /// its end; `nil` for none.
        package var laterTurns: Int?
        /// How long these turns took in all, in milliseconds.
        package var laterTurnsMilliseconds: Double?
        /// For how long timers and items waited within the stall, and operations were in progress to the last look: the sum,
        /// in milliseconds.
        package var totalWaitMilliseconds: Double
        /// What is not known, each with its reason; `nil` if nothing is missing.
        package var missing: [String]?

        package init(totalWaitMilliseconds: Double) { self.totalWaitMilliseconds = totalWaitMilliseconds }

        /// Returns how long others waited for the loop, in milliseconds; 0 if nothing waited, `nil` if that is not known.
        ///
        /// It is not where something is missing or may have waited, too: `omitsItems` says whether such items are not counted.
        package func harmMilliseconds(omitsItems: Bool) -> Double? {
            if totalWaitMilliseconds > 0 { return totalWaitMilliseconds }
            let hasTurns = laterTurnsMilliseconds ?? 0 >= StallReport.shortestTurns
            let mayHaveMore = omitsItems && mainQueueItems != nil || operations != nil || hasTurns
            return missing != nil || mayHaveMore || timers ?? 0 > 0 || mainQueueItems ?? 0 > 0 ? nil : 0
        }
    }

    /// How long others waited for the loop, in milliseconds; 0 if nothing waited, `nil` if that is not known.
    package var harmMilliseconds: Double? {
        victims?.harmMilliseconds(omitsItems: Self.omitsItems(callout, of: loop.kind, nesting: loop.nesting))
    }

    /// Whether a drain of the main queue may have taken items away before they could be counted.
    package static func omitsItems(_ callout: Callout?, of kind: LoopKind, nesting: Int) -> Bool {
        callout == .mainQueue || nesting > 0 || callout == nil && kind == .runLoop
    }

    /// One sentence that says what waited, without a period at the end; `nil` if the report does not tell.
    package var victimsInWords: String? {
        guard let victims else { return nil }
        var parts: [String] = []
        let omitsItems = Self.omitsItems(callout, of: loop.kind, nesting: loop.nesting)
        if let timers = victims.timers, timers > 0 {
            let delay = victims.longestTimerDelayMilliseconds.map { Self.inWords($0) } ?? ""
            let late = timers == 1 ? "a timer, \(delay) late" : "\(timers) timers, one of them \(delay) late"
            let skipped = victims.skippedFirings.map { $0 == 1 ? ", one firing skipped" : ", \($0) firings skipped" }
            // The time before the stall is not its.
            let earlier = (victims.longestTimerDelayMilliseconds ?? 0) - durationMilliseconds
            let before = earlier > 0 ? ", \(Self.inWords(earlier)) of it before the stall" : ""
            parts.append(late + before + (skipped ?? ""))
        }
        if let items = victims.mainQueueItems, items > 0 {
            let wait = victims.longestItemWaitMilliseconds.map { Self.inWords($0) } ?? ""
            // A main queue without a run loop runs its items one by one, between the looks.
            let least = omitsItems || loop.kind == .mainQueue ? "at least " : ""
            let noun = items == 1 ? "item of the main queue, for" : "items of the main queue, the first for"
            parts.append("\(least)\(items) \(noun) \(wait) or longer")
        }
        let owners = cause?.lock?.isDeadlock == true ? cause?.lock?.owners ?? [] : []
        // The last one owns what the one before it waits for.
        if owners.count > 1, owners.last?.thread.id == loop.thread?.id {
            parts.append(owners[owners.count - 2].thread.inWords)
        }
        var known = parts.isEmpty ? [] : ["Waited for it: " + parts.joined(separator: "; ")]
        if parts.isEmpty, victims.missing == nil {
            let item = omitsItems ? "later main-queue item" : "main-queue item"
            // One whose callout goes on is not counted, and may skip firings, too.
            let timer = callout == .timer ? "other timer" : "timer"
            let counted = [
                victims.timers.map { _ in timer }, victims.mainQueueItems.map { _ in item },
                victims.operations == nil ? "operation" : nil,
            ].compactMap(\.self)
            if let last = counted.last {
                let others = counted.dropLast().joined(separator: ", ")
                let isCut = omitsItems && victims.mainQueueItems != nil
                let uncounted = isCut ? " (items that ran in the same turn are not counted)" : ""
                known = ["No \(others)\(others.isEmpty ? "" : " or ")\(last) waited for it\(uncounted)"]
            }
        }
        // One of them may be what stalls the loop, and others may not need it.
        if let operations = victims.operations {
            let names = (victims.operationNames ?? []).joined(separator: ", ")
            let verb = operations == 1 ? "operation was" : "operations were"
            known.append("\(operations) \(verb) in flight\(names.isEmpty ? "" : " (\(names))")")
        }
        let unknown = (victims.missing ?? []).map { "not known: \($0)" }
        let text = (known + unknown).joined(separator: "; ") + after(victims)
        return (text.prefix(1).uppercased() + text.dropFirst()).withoutControls
    }

    /// The shortest time of the turns after a stall that is worth a word, in milliseconds: any turn has one right before it.
    fileprivate static let shortestTurns = 10.0

    /// The turns right after the stall, which may have waited for its end, as the end of a sentence.
    private func after(_ victims: Victims) -> String {
        guard let turns = victims.laterTurns, let time = victims.laterTurnsMilliseconds, time >= Self.shortestTurns
        else { return "" }
        return
            "; \(turns == 1 ? "a turn" : "\(turns) turns") of \(Self.inWords(time)) came right after it, and may have waited for it"
    }

    private static func inWords(_ milliseconds: Double) -> String {
        guard milliseconds >= 1_000 else { return "\(milliseconds.whole) ms" }
        let tenths = (milliseconds / 100).whole
        return "\(tenths / 10).\(tenths % 10) s"
    }

    /// Removes what waited for the loop: operations have the app's names.
    public mutating func removeVictims() { victims = nil }
}
