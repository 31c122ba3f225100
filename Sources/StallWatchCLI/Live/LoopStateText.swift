import StallReports
import TextOutput

/// The states of loops as a table.
enum LoopStateText {
    /// Returns the table, with a line feed at the end.
    static func table(_ loops: [ControlAnswer.LoopState], for terminal: Terminal) -> String {
        guard !loops.isEmpty else { return "It watches no loop.\n" }
        var table = TextTable([
            .init("loop", isFlexible: true, style: .bold), .init("state"), .init("busy", .right),
            .init("stalls", .right), .init("last stall (UTC)", dropped: 1),
        ])
        for loop in loops {
            table.add([
                loop.label.printable, state(of: loop), "\((loop.utilization * 100).fixed(1)) %", "\(loop.stalls)",
                loop.lastStall.map { "\($0)" } ?? "none",
            ])
        }
        return table.text(for: terminal)
    }

    /// "waits", "in a turn for 12 ms", "stalled for 3.20 s".
    static func state(of loop: ControlAnswer.LoopState) -> String {
        guard let turn = loop.turnMilliseconds else { return "waits" }
        return "\(turn >= loop.thresholdMilliseconds ? "stalled" : "in a turn") for \(turn.duration)"
    }
}
