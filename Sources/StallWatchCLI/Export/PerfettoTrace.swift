import StallReports

/// A trace for Perfetto (ui.perfetto.dev): the message `Trace` of perfetto_trace.proto, with track events.
///
/// Each loop is a track under its process. A turn that was no stall is a slice `turn`; a stall is a slice with its cause, and
/// contains a slice for each part of its time, named after the function to inspect first. Times are nanoseconds since 1970.
struct PerfettoTrace {
    /// The fields of the messages that are written (protos/perfetto/trace).
    private enum Field {
        static let packet = 1
        static let timestamp = 8
        static let sequence = 10
        static let event = 11
        static let track = 60
        static let eventType = 9
        static let eventTrack = 11
        static let eventCategories = 22
        static let eventName = 23
        static let annotation = 4
        static let annotationName = 10
        static let annotationText = 6
    }

    private enum EventType {
        static let begin = 1
        static let end = 2
    }

    /// All packets are from one writer, so they have one sequence.
    private static let sequence = 1

    private let profile: StallProfile
    private var trace = ProtobufWriter()
    private var tracks = 0

    static func data(_ profile: StallProfile) -> [UInt8] {
        var builder = PerfettoTrace(profile: profile)
        builder.write()
        return builder.trace.bytes
    }

    private mutating func write() {
        var processes: [StallProfile.Process: Int] = [:]
        for timeline in LoopTimeline.timelines(of: profile) {
            let process = timeline.loop.process
            let parent = processes[process] ?? addTrack(of: process)
            processes[process] = parent
            let number = timeline.loop.lane == 0 ? "" : " #\(timeline.loop.lane + 1)"
            let track = addTrack { track in
                track.string(2, timeline.loop.label + number)
                track.number(5, parent)
            }
            for span in timeline.spans {
                if let stall = span.stall {
                    add(profile.stalls[stall], span, track)
                } else {
                    begin("turn", "turn", at: span.begin, track)
                    end(at: span.end, track)
                }
            }
        }
    }

    private mutating func addTrack(of process: StallProfile.Process) -> Int {
        let isNamed = profile.hasSeveralHosts
        return addTrack { track in
            // Perfetto takes two processes with one id for one.
            if isNamed { return track.string(2, "\(process.name) \(process.pid) on \(process.host)") }
            track.message(3) { message in
                message.number(1, Int(process.pid))
                message.string(6, process.name)
            }
        }
    }

    private mutating func addTrack(_ body: (inout ProtobufWriter) -> Void) -> Int {
        tracks += 1
        let track = tracks
        trace.message(Field.packet) { packet in
            packet.number(Field.sequence, Self.sequence)
            packet.message(Field.track) { message in
                message.number(1, track)
                body(&message)
            }
        }
        return track
    }

    private mutating func add(_ stall: StallProfile.Stall, _ span: LoopTimeline.Span, _ track: Int) {
        begin(stall.kind, "stall", at: span.begin, track, cause: stall.cause)
        var time = span.begin
        for share in stall.shares {
            begin(function(of: share.node), "function", at: time, track)
            time += Int64(share.microseconds)
            end(at: min(time, span.end), track)
        }
        end(at: span.end, track)
    }

    /// The innermost function of the app on a stack, or the innermost function.
    private func function(of node: Int) -> String {
        let functions = profile.table.path(of: node).map { profile.table.function(ofFrame: $0) }
        return (functions.first(where: \.isInApp) ?? functions[0]).name
    }

    private mutating func begin(
        _ name: String, _ category: String, at time: Int64, _ track: Int, cause: String? = nil
    ) {
        event(at: time) { event in
            event.number(Field.eventType, EventType.begin)
            event.number(Field.eventTrack, track)
            event.string(Field.eventCategories, category)
            event.string(Field.eventName, name)
            guard let cause else { return }
            event.message(Field.annotation) { annotation in
                annotation.string(Field.annotationName, "cause")
                annotation.string(Field.annotationText, cause)
            }
        }
    }

    private mutating func end(at time: Int64, _ track: Int) {
        event(at: time) { event in
            event.number(Field.eventType, EventType.end)
            event.number(Field.eventTrack, track)
        }
    }

    private mutating func event(at microseconds: Int64, _ body: (inout ProtobufWriter) -> Void) {
        trace.message(Field.packet) { packet in
            packet.number(Field.timestamp, Timestamp(microsecondsSince1970: microseconds).nanoseconds)
            packet.number(Field.sequence, Self.sequence)
            packet.message(Field.event, body)
        }
    }
}

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

        var end: Int64 { begin + microseconds }

        /// The place among spans in order that do not overlap; `nil` if it overlaps one of them.
        fileprivate func index(in spans: [Span]) -> Int? {
            // The first span that ends after this one begins.
            let index = spans.partitioningIndex { $0.end > begin }
            return index < spans.count && spans[index].begin < end ? nil : index
        }
    }

    struct Loop: Hashable {
        var process: StallProfile.Process
        var label: String
        /// 0; 1 and more for stalls that overlap others of the loop, as when two monitors watch it.
        var lane = 0
    }

    var loop: Loop
    /// Ascending by time.
    var spans: [Span]

    /// Arranges the stalls and turns of a profile by loop, in the order in which the loops occur.
    ///
    /// Several reports may have the same turn, at times that differ by the rounding of a clock. A turn that overlaps another
    /// one, or a stall, is the same and left out.
    static func timelines(of profile: StallProfile) -> [LoopTimeline] {
        var loops = Numbered<Loop>()
        var spans: [Loop: [Span]] = [:]
        for index in profile.stalls.indices.sorted(by: { profile.stalls[$0].startedAt < profile.stalls[$1].startedAt })
        {
            let stall = profile.stalls[index]
            let owner = profile.loops[stall.loop]
            var loop = Loop(process: owner.process, label: owner.label)
            let begin = stall.startedAt.microsecondsSince1970
            while let last = spans[loop]?.last, last.end > begin { loop.lane += 1 }
            _ = loops.number(of: loop)
            spans[loop, default: []].append(Span(begin: begin, microseconds: Int64(stall.microseconds), stall: index))
        }
        var turns: [Loop: [Span]] = [:]
        for stall in profile.stalls {
            let owner = profile.loops[stall.loop]
            let start = stall.startedAt.microsecondsSince1970
            for history in stall.history {
                let loop = Loop(process: owner.process, label: history.label)
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
