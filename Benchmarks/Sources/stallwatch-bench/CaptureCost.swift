import CCaptureCost

/// How long a running thread is held by a capture, as it sees itself by its own clock, and how long the caller takes.
enum CaptureCost {
    private static let ways: [(capture_way, String)] = [
        (CAPTURE_STOP, "StallWatch, stop"),
        (CAPTURE_SIGNAL, "StallWatch, signal"),
        (CAPTURE_READ, "StallWatch, read (thread blocked)"),
        (CAPTURE_PLAIN_SIGNAL_COPY, "signal handler, memcpy of the stack"),
        (CAPTURE_BACKTRACE_IN_HANDLER, "signal handler, backtrace(3)"),
        (CAPTURE_NOTHING, "nothing: what the machine does by itself"),
    ]

    private struct Cost {
        var held: Samples
        var whole: Samples
        var frames: Double
    }

    private static func measure(_ way: capture_way, _ name: String, bytes: Int, count: Int) throws -> Cost {
        var held = [UInt64](repeating: 0, count: count)
        var whole = held
        let frames = capture_cost(way, bytes, count, &held, &whole)
        guard frames >= 0 else { throw CannotMeasure(description: "\(name): a capture failed") }
        func microseconds(_ values: [UInt64]) -> Samples { Samples(values.map { Double($0) / 1000 }) }
        return Cost(held: microseconds(held), whole: microseconds(whole), frames: frames)
    }

    static func table() throws -> Table {
        let count = 1000
        var table = Table(
            title: "Capture of a thread with a 64 KiB stack, \(count) times",
            columns: [
                "way", "held p50, us", "held p99, us", "held p50 / backtrace(3)'s", "caller p50, us", "caller p99, us",
            ]
        )
        let costs = try ways.map { ($1, try measure($0, $1, bytes: 65_536, count: count)) }
        let reference = costs.first { $0.0.contains("backtrace") }?.1.held.median ?? 0
        for (name, cost) in costs {
            table.rows.append([
                name, cost.held.median.digits(1), cost.held.percentile(99).digits(1),
                (cost.held.median / reference).digits(2), cost.whole.median.digits(1),
                cost.whole.percentile(99).digits(1),
            ])
        }
        return table
    }

    static func tableByDepth() throws -> Table {
        var table = Table(
            title: "Capture by depth of the stack, 300 times each",
            columns: [
                "stack", "frames", "stop: held p50, us", "stop: caller p50, us", "read: caller p50, us",
                "backtrace(3) in a handler: held p50, us", "stop's held / backtrace(3)'s",
            ]
        )
        for kibibytes in [4, 16, 64, 256] {
            func cost(_ way: capture_way) throws -> Cost {
                try measure(way, "\(kibibytes) KiB", bytes: kibibytes * 1024, count: 300)
            }
            let stop = try cost(CAPTURE_STOP)
            let read = try cost(CAPTURE_READ)
            let reference = try cost(CAPTURE_BACKTRACE_IN_HANDLER)
            table.rows.append([
                "\(kibibytes) KiB", stop.frames.digits(0), stop.held.median.digits(1), stop.whole.median.digits(1),
                read.whole.median.digits(1), reference.held.median.digits(1),
                (stop.held.median / reference.held.median).digits(2),
            ])
        }
        return table
    }
}
