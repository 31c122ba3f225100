import Glibc
import LinuxSupport

/// The alternate screen of the terminal, while it is drawn on.
///
/// The terminal is as before when it is closed.
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
    private var isOpen = true

    /// Opens the screen: keys are read one by one, and not shown.
    ///
    /// - Throws: A ``CommandFailure`` if standard output is no terminal that can be drawn on.
    init() throws {
        let type = getenv("TERM").map { String(cString: $0) } ?? ""
        guard isatty(STDOUT_FILENO) == 1, type != "dumb", type != "" else {
            throw CommandFailure(
                .usage, "This needs a terminal to draw on: use --once or --json to write lines.")
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

    deinit { restore() }

    /// The size of the terminal; 80 × 24 if it does not know its own.
    var size: WatchFrame.Size {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return WatchFrame.Size(columns: 80, rows: 24)
        }
        return WatchFrame.Size(columns: Int(size.ws_col), rows: Int(size.ws_row))
    }

    /// Draws lines over those before, with one write.
    func draw(_ lines: [String]) throws {
        let text = lines.map { $0 + Self.clearLine }.joined(separator: "\r\n")
        try StandardOutput.write(Self.home + text + Self.clearRest)
    }

    /// Waits for a key.
    ///
    /// - Parameter deadline: The end of the wait, in monotonic nanoseconds.
    /// - Returns: The key; `nil` if none was pressed.
    func key(until deadline: UInt64) -> UInt8? {
        var polled = pollfd(fd: settings == nil ? -1 : STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        guard poll(&polled, 1, UnixSocket.milliseconds(until: deadline)) > 0 else { return nil }
        var byte: UInt8 = 0
        // A terminal that is gone gives the end of the input again and again.
        return read(STDIN_FILENO, &byte, 1) == 1 ? byte : UInt8(ascii: "q")
    }

    /// Gives the terminal back.
    func restore() {
        guard isOpen else { return }
        isOpen = false
        // A terminal that is gone needs no restoring.
        try? StandardOutput.write(Self.close)
        if var settings { tcsetattr(STDIN_FILENO, TCSADRAIN, &settings) }
    }
}
