import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import TextOutput

/// Shows the loops of a live process again and again.
struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Show the loops of a live process and its stalls on a live screen.",
        discussion: """
            The process's configuration has to set control = .socket(directory:). The screen shows for each loop the share of the \
            last interval that it has spent in turns, its current turn and its number of stalls, and below them the latest \
            stalls with their causes. It ends with q, with Ctrl-C, or when the process ends. The tool has to run as the \
            process's user or as root.

            Examples:
              stallwatch watch $(pidof notes)
              stallwatch watch 4700 --interval 200ms
              stallwatch watch 4700 --json | jq .loops
            """
    )

    @OptionGroup var arguments: LiveArguments

    @Option(
        help: ArgumentHelp("The time between two looks: 100ms to 1m.", valueName: "duration"),
        transform: DurationArgument.init(parsing:))
    var interval = DurationArgument(milliseconds: 1_000)

    @Flag(help: "Write the screen once, as lines, and end.")
    var once = false

    func validate() throws {
        guard (100...60_000).contains(interval.milliseconds) else {
            throw ValidationError("--interval is \(interval), but has to be between 100ms and 1m.")
        }
    }

    func run() throws {
        let isEnding = Ending()
        var process = WatchedProcess(pid: arguments.pid)
        // Before the screen is opened, so that a failure is a line on the usual one.
        try process.update()
        if once {
            wait(isEnding)
            try process.update()
            guard let frame = process.frame else { return }
            return try write(frame)
        }
        if arguments.json {
            Interruption.handle { isEnding.set() }
            while !isEnding.isSet, !StandardOutput.readerIsGone {
                wait(isEnding)
                try process.update()
                if let frame = process.frame { try write(frame) }
            }
        } else {
            try show(&process, isEnding)
        }
    }

    /// Draws the screen until it is closed.
    private func show(_ process: inout WatchedProcess, _ isEnding: Ending) throws {
        let terminal = arguments.terminalOptions.terminal
        let screen = try LiveScreen()
        defer { screen.restore() }
        Interruption.handle { isEnding.set() }
        var drawn: WatchFrame.Size?
        var due = monotonicNow() &+ period
        while !isEnding.isSet {
            let size = screen.size
            if size != drawn, let frame = process.frame {
                try screen.draw(frame.lines(in: size, for: terminal))
                drawn = size
            }
            let now = monotonicNow()
            if let key = screen.key(until: min(due, now &+ Self.reaction)) {
                if key == UInt8(ascii: "q") || key == UInt8(ascii: "Q") { return }
            }
            guard monotonicNow() >= due else { continue }
            try process.update()
            drawn = nil
            due = monotonicNow() &+ period
        }
    }

    /// The longest time until a signal or a new size of the terminal is seen, in nanoseconds.
    private static let reaction: UInt64 = 100_000_000

    /// The interval in nanoseconds.
    private var period: UInt64 { UInt64(interval.milliseconds * 1_000_000) }

    private func wait(_ isEnding: Ending) {
        let due = monotonicNow() &+ period
        while !isEnding.isSet, monotonicNow() < due { usleep(20_000) }
    }

    private func write(_ frame: WatchFrame) throws {
        if arguments.json { return try StandardOutput.write(JSONOutput.bytes(WatchLine(frame), isIndented: false)) }
        let terminal = arguments.terminalOptions.terminal
        let size = WatchFrame.Size(columns: terminal.width ?? 120, rows: Self.rowsOfOnce)
        let lines = frame.lines(in: size, for: terminal)
        try StandardOutput.write(lines.joined(separator: "\n") + "\n")
    }

    /// The most lines of `--once`.
    private static let rowsOfOnce = 200
}
