import Glibc
import LinuxSupport
import TextOutput

/// A progress bar on standard error, for work over a second on a terminal.
final class ProgressBar {
    /// To the line's beginning, and clear to its end (ECMA-48).
    private static let rewind = "\r\u{1b}[K"

    private let label: String
    private let total: Int
    private let isShown: Bool
    private let columns: Int
    private var due: UInt64
    private var isDrawn = false

    /// Makes a bar; `total` is the final value of ``advance(to:)``, 0 if unknown.
    init(_ label: String, total: Int) {
        self.label = label
        self.total = total
        var size = winsize()
        let isTerminal =
            isatty(STDERR_FILENO) == 1 && getenv("TERM").map { strcmp($0, "dumb") != 0 && $0.pointee != 0 } == true
        let isKnown = isTerminal && ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        isShown = isTerminal
        columns = isKnown ? Int(size.ws_col) : 80
        due = monotonicNow() + 1_000_000_000
    }

    /// Shows the progress, at most ten times a second.
    func advance(to done: Int) {
        guard isShown, monotonicNow() >= due else { return }
        due = monotonicNow() + 100_000_000
        isDrawn = true
        StandardError.write(Self.rewind + Self.text(label, done: done, total: total, columns: columns))
    }

    func show() {
        due = 0
        advance(to: 0)
    }

    func clear() {
        guard isDrawn else { return }
        isDrawn = false
        StandardError.write(Self.rewind)
    }

    /// The bar in one row, without the last column, where a terminal may wrap.
    static func text(_ label: String, done: Int, total: Int, columns: Int) -> String {
        guard total > 0 else { return "\(label) …".truncated(to: columns - 1) }
        let share = min(max(Double(done) / Double(total), 0), 1)
        let percent = "\(Int(share * 100)) %".padded(to: 6, .right)
        let width = min(40, columns - 1 - label.columns - percent.columns - 3)
        guard width > 3 else { return "\(label)\(percent)".truncated(to: columns - 1) }
        let filled = Int(share * Double(width))
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
        return "\(label) \(bar) \(percent)"
    }
}
