import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import TextOutput

struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Show the loops of a live process and its stalls on a live screen.",
        usage: "stallwatch watch [<process>] [<options>]",
        discussion: """
            The process's configuration has to set control = .socket(directory:). The screen shows for each loop the share of its \
            time that it has spent in turns, over the last minute and in the last interval, its current turn, threshold and number \
            of stalls. A line about Swift tasks, read every 10 seconds, says how many there are, and which has been seen in the \
            same place for the longest time. Below it are the stalls in groups of the same loop and function, with the latest \
            cause. The arrow keys choose a group, Enter opens its latest stall, s sorts, and ? lists the keys. It ends with q, \
            with Ctrl-C, or when the process ends. The tool has to run as the process's user or as root.

            Examples:
              stallwatch watch
              stallwatch watch notes
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
        let stop = StopRequest()
        var process = PolledProcess(pid: try arguments.pid())
        // Before the screen is opened, so that a failure is a line on the usual one.
        try process.update()
        if once {
            process.tasks.read()
            stop.wait(until: monotonicNow() &+ period)
            try process.update()
            guard let frame = process.frame else { return }
            return try write(frame)
        }
        process.tasks.follow()
        if arguments.output.json {
            Interruption.handle { stop.set() }
            while !stop.isSet, !StandardOutput.isClosed {
                stop.wait(until: monotonicNow() &+ period)
                try process.update()
                if let frame = process.frame { try write(frame) }
            }
        } else {
            try show(&process, stop)
        }
    }

    private func show(_ process: inout PolledProcess, _ stop: StopRequest) throws {
        let terminal = arguments.output.terminalOptions.terminal
        let screen = try LiveScreen()
        Interruption.handle { stop.set() }
        var drawn: WatchFrame.Size?
        var controls = WatchControls()
        var due = monotonicNow() &+ period
        while !stop.isSet {
            let size = screen.size
            if size != drawn, let frame = process.frame {
                let opened = controls.isOpen ? opened(frame.chosen(controls), of: process, size, terminal) : nil
                // Else each key beyond the end would have to be taken back.
                controls.scrolled = min(controls.scrolled, frame.mostScrolled(in: size, controls, opened: opened))
                try screen.draw(frame.lines(in: size, for: terminal, controls, opened: opened))
                drawn = size
            }
            let now = monotonicNow()
            for key in screen.keys(until: min(due, now &+ Self.reaction)) {
                controls = controls.after(key, process.frame?.groups(by: controls.order) ?? [])
                if controls.isDone { return }
                drawn = nil
            }
            guard monotonicNow() >= due else { continue }
            try process.update()
            drawn = nil
            due = monotonicNow() &+ period
        }
    }

    /// The report of a group's latest stall as text; `nil` if it was not found.
    private func opened(
        _ group: WatchGroup?, of process: PolledProcess, _ size: WatchFrame.Size, _ terminal: Terminal
    ) -> String? {
        guard let group, let (report, origin) = process.report(group.latest.id) else { return nil }
        var terminal = terminal
        terminal.width = max(size.columns, WatchFrame.leastColumns)
        return ReportView(report: report, origin: origin, terminal: terminal).text
    }

    /// The longest time until a signal or a new size of the terminal is seen, in nanoseconds.
    private static let reaction: UInt64 = 100_000_000

    private var period: UInt64 { UInt64(interval.milliseconds * 1_000_000) }

    private func write(_ frame: WatchFrame) throws {
        if arguments.output.json {
            return try StandardOutput.write(JSONOutput.bytes(frame, isIndented: false))
        }
        let terminal = arguments.output.terminalOptions.terminal
        let size = WatchFrame.Size(columns: terminal.width ?? 120, rows: Self.rowsOfOnce)
        try StandardOutput.write(frame.lines(in: size, for: terminal).joined(separator: "\n") + "\n")
    }

    private static let rowsOfOnce = 200
}

final class LiveScreen {
    /// The alternate screen with a clear page and no cursor, and back (xterm's control sequences).
    private static let open = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[2J"
    private static let close = "\u{1b}[?25h\u{1b}[?1049l"
    /// To the first column of the first row; to the end of a line, and of the screen, without characters (ECMA-48).
    private static let home = "\u{1b}[H"
    private static let clearLine = "\u{1b}[K"
    private static let clearRest = "\u{1b}[J"

    /// The settings to restore; `nil` if standard input is no terminal.
    private let settings: termios?

    /// Opens the screen, with keys read one by one and not shown; throws if standard output is no terminal.
    init() throws {
        guard isatty(STDOUT_FILENO) == 1, Terminal.obeysSequences else {
            throw CommandFailure(.usage, "This needs a terminal to draw on: use --once or --json to write lines.")
        }
        var current = termios()
        if isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &current) == 0 {
            settings = current
            current.c_lflag &= ~tcflag_t(ICANON | ECHO)
            // Ctrl-Z would leave the shell on this screen.
            withUnsafeMutableBytes(of: &current.c_cc) { $0[Int(VSUSP)] = 0 }
            tcsetattr(STDIN_FILENO, TCSADRAIN, &current)
        } else {
            settings = nil
        }
        try StandardOutput.write(Self.open)
    }

    deinit {
        // A terminal that is gone needs no restoring.
        try? StandardOutput.write(Self.close)
        if var settings { tcsetattr(STDIN_FILENO, TCSADRAIN, &settings) }
    }

    /// The size of the terminal; 80 × 24 if it does not know its own.
    var size: WatchFrame.Size {
        guard let size = Terminal.size(of: STDOUT_FILENO), let rows = size.rows else {
            return WatchFrame.Size(columns: 80, rows: 24)
        }
        return WatchFrame.Size(columns: size.columns, rows: rows)
    }

    func draw(_ lines: [String]) throws {
        let text = lines.map { $0 + Self.clearLine }.joined(separator: "\r\n")
        try StandardOutput.write(Self.home + text + Self.clearRest)
    }

    /// Waits for a key until a time in monotonic nanoseconds; returns all that were pressed.
    func keys(until deadline: UInt64) -> [WatchControls.Key] {
        var polled = pollfd(fd: settings == nil ? -1 : STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        guard poll(&polled, 1, UnixSocket.milliseconds(until: deadline)) > 0 else { return [] }
        // The bytes of a key come together. An arrow has three, so that the end of the array divides none.
        var bytes = [UInt8](repeating: 0, count: 96)
        // Read before the array is used: `bytes.prefix(read(…, &bytes, …))` would take the bytes of before.
        let count = read(STDIN_FILENO, &bytes, bytes.count)
        // A terminal that is gone gives the end of the input again and again.
        return WatchControls.Key.keys(Array(bytes.prefix(max(count, 0))))
    }
}
