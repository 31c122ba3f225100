import StallReports
import StallSymbols

/// The stalls and turns of one loop on one line of time: no two overlap.
struct LoopTimeline: Equatable {
    struct Span: Equatable {
        /// The begin, in microseconds since 1970.
        var begin: Int64
        /// The duration in microseconds, 0 or more.
        var microseconds: Int64
        /// Index into the profile's stalls; `nil` for a turn.
        var stall: Int?

        var end: Int64 { begin + microseconds }

        /// The place among spans in order that do not overlap; `nil` if it overlaps one of them.
        fileprivate func index(in spans: [Span]) -> Int? {
            let index = spans.prefixCount { $0.end <= begin }
            return index < spans.count && spans[index].begin < end ? nil : index
        }
    }

    struct Lane: Hashable {
        var process: StallProfile.Process
        var label: String
        /// 0; 1 and more for stalls that overlap others of the loop, as when two monitors watch it.
        var number = 0
    }

    var loop: Lane
    var spans: [Span]

    /// Turns of several reports that overlap, by the rounding of a clock, are the same one, and so is one in a stall.
    static func timelines(of profile: StallProfile) -> [LoopTimeline] {
        var loops = Numbered<Lane>()
        var spans: [Lane: [Span]] = [:]
        for index in profile.stalls.indices.sorted(by: { profile.stalls[$0].startedAt < profile.stalls[$1].startedAt })
        {
            let stall = profile.stalls[index]
            let owner = profile.loops[stall.loop]
            var loop = Lane(process: owner.process, label: owner.label)
            let begin = stall.startedAt.microsecondsSince1970
            while let last = spans[loop]?.last, last.end > begin { loop.number += 1 }
            _ = loops.number(of: loop)
            spans[loop, default: []].append(Span(begin: begin, microseconds: Int64(stall.microseconds), stall: index))
        }
        var turns: [Lane: [Span]] = [:]
        for stall in profile.stalls {
            let owner = profile.loops[stall.loop]
            let start = stall.startedAt.microsecondsSince1970
            for history in stall.history {
                let loop = Lane(process: owner.process, label: history.label)
                _ = loops.number(of: loop)
                turns[loop, default: []] += history.turns.map { turn in
                    Span(
                        begin: start + Int64((turn.atMilliseconds * 1_000).rounded()),
                        microseconds: Int64((turn.durationMilliseconds * 1_000).rounded())
                    )
                }
            }
        }
        return loops.values.map { loop in
            LoopTimeline(loop: loop, spans: merge(spans[loop] ?? [], turns[loop] ?? []))
        }
    }

    /// Adds to stalls the turns that overlap nothing; of several that overlap each other, the longest.
    private static func merge(_ stalls: [Span], _ turns: [Span]) -> [Span] {
        let free = turns.filter { $0.index(in: stalls) != nil }.sorted { $0.begin < $1.begin }
        var chosen: [Span] = []
        var begin = 0
        while begin < free.count {
            // Turns of which each overlaps an earlier one of them: few, while a service has millions.
            var (next, end) = (begin + 1, free[begin].end)
            while next < free.count, free[next].begin < end {
                end = max(end, free[next].end)
                next += 1
            }
            var cluster: [Span] = []
            for turn in free[begin..<next].sorted(by: { ($0.microseconds, $1.begin) > ($1.microseconds, $0.begin) }) {
                if let index = turn.index(in: cluster) { cluster.insert(turn, at: index) }
            }
            chosen += cluster
            begin = next
        }
        return (stalls + chosen).sorted { $0.begin < $1.begin }
    }
}
