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

    /// `TrackEvent.Type`.
    private enum EventType {
        static let begin = 1
        static let end = 2
    }

    /// All packets are from one writer, so they have one sequence.
    private static let sequence = 1

    private let profile: StallProfile
    private var trace = ProtobufWriter()
    private var tracks = 0

    /// The file's contents.
    static func data(_ profile: StallProfile) -> [UInt8] {
        var builder = PerfettoTrace(profile: profile)
        builder.write()
        return builder.trace.bytes
    }

    private init(profile: StallProfile) {
        self.profile = profile
    }

    private struct Process: Hashable {
        var name: String
        var pid: Int32
    }

    private mutating func write() {
        var processes: [Process: Int] = [:]
        for timeline in LoopTimeline.timelines(of: profile) {
            let process = Process(name: timeline.loop.process, pid: timeline.loop.pid)
            let parent = processes[process] ?? addProcess(process)
            processes[process] = parent
            let number = timeline.loop.lane == 0 ? "" : " #\(timeline.loop.lane + 1)"
            let track = addLoop(timeline.loop.label + number, under: parent)
            for span in timeline.spans {
                if let stall = span.stall { add(profile.stalls[stall], span, track) } else { add(turn: span, track) }
            }
        }
    }

    private mutating func addProcess(_ process: Process) -> Int {
        addTrack { track in
            track.message(3) { message in
                message.number(1, Int(process.pid))
                message.string(6, process.name)
            }
        }
    }

    private mutating func addLoop(_ label: String, under parent: Int) -> Int {
        addTrack { track in
            track.string(2, label)
            track.number(5, parent)
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

    private mutating func add(turn: LoopTimeline.Span, _ track: Int) {
        begin("turn", "turn", at: turn.begin, track)
        end(at: turn.end, track)
    }

    private mutating func add(_ stall: StallProfile.Stall, _ span: LoopTimeline.Span, _ track: Int) {
        begin(
            stall.kind, "stall", at: span.begin, track,
            notes: [("cause", stall.cause)])
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
        let table = profile.table
        var next: Int? = node
        while let current = next {
            let function = table.functions[table.frames[table.nodes[current].frame].function]
            if function.isInApp { return function.name }
            next = table.nodes[current].caller
        }
        return table.functions[table.frames[table.nodes[node].frame].function].name
    }

    private mutating func begin(
        _ name: String, _ category: String, at time: Int64, _ track: Int, notes: [(name: String, text: String)] = []
    ) {
        event(at: time) { event in
            event.number(Field.eventType, EventType.begin)
            event.number(Field.eventTrack, track)
            event.string(Field.eventCategories, category)
            event.string(Field.eventName, name)
            for (name, text) in notes {
                event.message(Field.annotation) { annotation in
                    annotation.string(Field.annotationName, name)
                    annotation.string(Field.annotationText, text)
                }
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
            // A time before 1970 or after 2262 does not fit.
            packet.number(Field.timestamp, UInt64(clamping: microseconds.multipliedClamping(by: 1_000)))
            packet.number(Field.sequence, Self.sequence)
            packet.message(Field.event, body)
        }
    }
}

extension Int64 {
    fileprivate func multipliedClamping(by factor: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: factor)
        return overflow ? (self < 0 ? .min : .max) : product
    }
}
