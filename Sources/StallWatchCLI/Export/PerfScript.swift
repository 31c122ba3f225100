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
