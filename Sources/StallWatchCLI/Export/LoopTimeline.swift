import StallReports

/// The stalls and turns of one loop on one line of time: no two overlap.
struct LoopTimeline: Equatable {
    /// A stall, or a turn that was no stall.
    struct Span: Equatable {
        /// The begin, in microseconds since 1970.
        var begin: Int64
        /// The duration in microseconds, 0 or more.
        var microseconds: Int64
        /// Index into the profile's stalls; `nil` for a turn.
        var stall: Int?

        /// The end, in microseconds since 1970.
        var end: Int64 { begin + microseconds }
    }

    /// A loop of a process.
    struct Loop: Hashable {
        var process: String
        var pid: Int32
        var label: String
        /// 0; 1 and more for stalls that overlap others of the loop, as when two monitors watch it.
        var lane = 0

        init(process: String, pid: Int32, label: String) {
            self.process = process
            self.pid = pid
            self.label = label
        }

        /// The loop of a profile.
        init(_ loop: StallProfile.Loop) {
            self.init(process: loop.process, pid: loop.pid, label: loop.label)
        }
    }

    var loop: Loop
    /// Ascending by time.
    var spans: [Span]

    /// Returns the turns that were no stalls, for each loop of a profile.
    ///
    /// A profile has several loops with one label if the loop has moved to another thread. The first has the turns.
    ///
    /// - Parameter profile: The stalls.
    /// - Returns: An element for each of the profile's loops.
    static func turns(of profile: StallProfile) -> [[Span]] {
        var turns = Dictionary(
            timelines(of: profile).filter { $0.loop.lane == 0 }.map { ($0.loop, $0.spans.filter { $0.stall == nil }) },
            uniquingKeysWith: { first, _ in first })
        return profile.loops.map { turns.removeValue(forKey: Loop($0)) ?? [] }
    }

    /// Arranges the stalls and turns of a profile by loop.
    ///
    /// Several reports may have the same turn, at times that differ by the rounding of a clock. A turn that overlaps another
    /// one, or a stall, is the same and left out.
    ///
    /// - Parameter profile: The stalls.
    /// - Returns: A timeline for each loop, in the order in which the loops occur.
    static func timelines(of profile: StallProfile) -> [LoopTimeline] {
        var order: [Loop] = []
        var spans: [Loop: [Span]] = [:]
        func register(_ loop: Loop) {
            guard spans[loop] == nil else { return }
            order.append(loop)
            spans[loop] = []
        }
        for index in profile.stalls.indices.sorted(by: { profile.stalls[$0].startedAt < profile.stalls[$1].startedAt })
        {
            let stall = profile.stalls[index]
            let owner = profile.loops[stall.loop]
            var loop = Loop(process: owner.process, pid: owner.pid, label: owner.label)
            let begin = stall.startedAt.microsecondsSince1970
            while let last = spans[loop]?.last, last.end > begin { loop.lane += 1 }
            register(loop)
            spans[loop]?.append(Span(begin: begin, microseconds: Int64(stall.microseconds), stall: index))
        }
        var turns: [Loop: [Span]] = [:]
        for stall in profile.stalls {
            let owner = profile.loops[stall.loop]
            let start = stall.startedAt.microsecondsSince1970
            for history in stall.history {
                let loop = Loop(process: owner.process, pid: owner.pid, label: history.label)
                register(loop)
                turns[loop, default: []] += history.turns.map { turn in
                    Span(
                        begin: start + Int64((turn.atMilliseconds * 1_000).rounded()),
                        microseconds: Int64((turn.durationMilliseconds * 1_000).rounded())
                    )
                }
            }
        }
        return order.map { loop in
            LoopTimeline(loop: loop, spans: merge(spans[loop] ?? [], turns[loop] ?? []))
        }
    }

    /// Adds to stalls the turns that overlap nothing; of several that overlap each other, the longest.
    private static func merge(_ stalls: [Span], _ turns: [Span]) -> [Span] {
        var merged = stalls
        for turn in turns.sorted(by: { ($0.microseconds, $1.begin) > ($1.microseconds, $0.begin) }) {
            // The first span that ends after the turn begins.
            let index = merged.partitioningIndex { $0.end > turn.begin }
            if index < merged.count, merged[index].begin < turn.end { continue }
            merged.insert(turn, at: index)
        }
        return merged
    }
}

extension Array {
    /// Returns the first index whose element satisfies a predicate that all later elements satisfy too.
    fileprivate func partitioningIndex(where isAfter: (Element) -> Bool) -> Int {
        var range = indices
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = isAfter(self[middle]) ? range.lowerBound..<middle : (middle + 1)..<range.upperBound
        }
        return range.lowerBound
    }
}
