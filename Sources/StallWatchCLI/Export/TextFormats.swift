/// Collapsed stacks, the input of flamegraph.pl, inferno and speedscope.
///
/// Each stack has one line: its functions from the outermost to the innermost, separated by semicolons, then a blank and
/// the stalled time in whole microseconds. The first function is the loop, so that loops appear side by side. Lines are
/// sorted.
enum CollapsedStacks {
    static func data(_ profile: StallProfile) -> [UInt8] {
        var weights: [Stack: Int] = [:]
        for stall in profile.stalls {
            let loop = profile.loops[stall.loop]
            for share in stall.allShares {
                let stack = Stack(loop: "\(loop.process) \(loop.label)", node: share.node)
                weights[stack, default: 0] += share.microseconds
            }
        }
        // The format has functions without lines, so frames of one function at different lines are merged.
        var lines: [String: Int] = [:]
        for (stack, microseconds) in weights {
            let names = profile.table.path(of: stack.node).reversed().map { profile.table.function(ofFrame: $0).name }
            lines[([stack.loop] + names).map(word).joined(separator: ";"), default: 0] += microseconds
        }
        return lines.sorted { $0.key < $1.key }.reduce(into: []) { $0 += "\($1.key) \($1.value)\n".utf8 }
    }

    private struct Stack: Hashable {
        var loop: String
        var node: Int
    }

    /// A name without semicolons and line feeds, which the format cannot escape.
    private static func word(_ name: String) -> String {
        String(name.map { $0 == ";" ? ":" : $0.isNewline ? " " : $0 })
    }
}

/// The output format of `perf script -F comm,pid,tid,time,period,event,ip,sym,dso` (perf-script(1)): one event for each
/// piece of stalled time, with its stack.
///
/// Some readers (stackcollapse-perf.pl) weigh an event by its period, some (gprof2dot, Firefox Profiler) count events, and
/// some (speedscope) use the time from one event to the next. To make all of them show stalled time, the stalls of a loop
/// follow one another without gaps, with one event per ``interval``. Each event's period is its exact stalled time in
/// microseconds.
struct PerfScript {
    /// The approximate maximum of lines, about 6 MB; exceeded if one event per share needs more.
    static let maximumLines = 60_000
    /// The shortest time between two events, in microseconds: the sampling interval of `perf record -F 100`.
    static let minimumInterval = 10_000

    private let profile: StallProfile
    /// The approximate stalled time per event, in microseconds.
    let interval: Int

    init(_ profile: StallProfile) {
        self.profile = profile
        let shares = profile.stalls.flatMap(\.shares)
        let time = shares.reduce(0.0) { $0 + Double($1.microseconds) }
        // The number of lines if there were an event each microsecond.
        let lines = shares.reduce(0.0) {
            $0 + Double($1.microseconds) * Double(profile.table.depth(of: $1.node) + 2)
        }
        let events = Double(Self.maximumLines) * time / max(lines, 1)
        interval = max(Int(min(time / max(events, 1), 1e18)), Self.minimumInterval)
    }

    static func data(_ profile: StallProfile) -> [UInt8] {
        PerfScript(profile).data()
    }

    private func data() -> [UInt8] {
        var text: [UInt8] = []
        // The text of each stack, by node.
        var stacks: [Int: [UInt8]] = [:]
        for (loop, stalls) in zip(profile.loops, profile.stallsByLoop) {
            var clock = 0
            for share in stalls.flatMap(\.shares) {
                let stack = stacks[share.node] ?? self.stack(share.node)
                stacks[share.node] = stack
                for period in periods(of: share.microseconds) {
                    text += event(loop, at: clock, period: period).utf8
                    text += stack
                    clock += period
                }
            }
        }
        return text
    }

    /// Divides a share's time into periods of about one interval each, which add up to it.
    private func periods(of microseconds: Int) -> [Int] {
        let count = max((microseconds + interval / 2) / interval, 1)
        let each = microseconds / count
        return (0..<count).map { $0 < microseconds % count ? each + 1 : each }
    }

    private func event(_ loop: StallProfile.Loop, at microseconds: Int, period: Int) -> String {
        let (seconds, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let fraction = String(rest + 1_000_000).dropFirst()
        // A loop without a thread is a pool, so the process's id replaces the thread's.
        let event = profile.content == .stalls ? "stall" : "sample"
        return "\(command(loop)) \(loop.pid)/\(loop.thread ?? loop.pid) \(seconds).\(fraction): \(period) \(event):\n"
    }

    /// Returns the loop's label as perf prints a thread's name, without blanks, which would begin the next column.
    private func command(_ loop: StallProfile.Loop) -> String {
        let name = loop.label.isEmpty ? loop.process : loop.label
        return String(name.map { $0.isWhitespace || $0.isNewline ? "_" : $0 })
    }

    /// Returns the lines of a stack, innermost frame first, and the blank line that ends the event.
    private func stack(_ node: Int) -> [UInt8] {
        let table = profile.table
        let lines = table.path(of: node).map { index in
            let frame = table.frames[index]
            let image = frame.image.map { table.images[$0].path } ?? "[unknown]"
            let name = String(table.function(ofFrame: index).name.map { $0.isNewline ? " " : $0 })
            let inlined = frame.isInlined ? "inlined" : image
            let address = String(frame.address, radix: 16)
            return String(repeating: " ", count: max(16 - address.count, 0) + 1) + "\(address) \(name) (\(inlined))\n"
        }
        return Array((lines.joined() + "\n").utf8)
    }
}

/// A file for speedscope (speedscope.app): its own JSON format with one sampled profile for each loop.
///
/// The stalls of a loop follow one another without the time between them, in microseconds of stalled time. What each
/// field means is documented in speedscope's `src/lib/file-format-spec.ts`.
enum SpeedscopeProfile {
    static func data(_ profile: StallProfile, exporter: String) -> [UInt8] {
        let table = profile.table
        // One frame per function: speedscope merges equal frame indices and shows one line for them.
        let frames = table.functions.map { function in
            JSONText.Value.object(
                [("name", .string(function.name))] + (function.file.map { [("file", .string($0))] } ?? [])
            )
        }
        let profiles = zip(profile.loops, profile.stallsByLoop).map { loop, stalls in
            let shares = stalls.flatMap(\.shares)
            return JSONText.Value.object([
                ("type", .string("sampled")),
                ("name", .string("\(loop.process) (\(loop.pid)) \(loop.label)")),
                ("unit", .string("microseconds")),
                ("startValue", .int(0)),
                ("endValue", .int(shares.reduce(0) { $0 + $1.microseconds })),
                (
                    "samples",
                    .array(
                        shares.map { share in
                            .ints(table.path(of: share.node).reversed().map { table.frames[$0].function })
                        }
                    )
                ),
                ("weights", .ints(shares.map(\.microseconds))),
            ])
        }
        let file = JSONText.Value.object([
            ("$schema", .string("https://www.speedscope.app/file-format-schema.json")),
            ("exporter", .string(exporter)),
            ("name", .string(profile.content == .stalls ? "Stalled time" : "Sampled time")),
            ("activeProfileIndex", .int(0)),
            ("shared", .object([("frames", .array(frames))])),
            ("profiles", .array(profiles)),
        ])
        return JSONText(file).bytes + [UInt8(ascii: "\n")]
    }
}
