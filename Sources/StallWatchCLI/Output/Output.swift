import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import TextOutput

enum StandardOutput {
    /// Writes text for people; throws ``ClosedOutput`` when the reader has closed its end, else a ``CommandFailure``.
    static func write(_ text: String) throws { try write(Array(text.forThisReader.utf8)) }

    /// Writes the last text of a command: on a terminal, and if it is longer than that, in a pager.
    static func writeLast(_ text: String) throws {
        let terminal = Terminal.standardOutput
        if terminal.isTerminal, Terminal.obeysSequences, isatty(STDIN_FILENO) == 1, let height = terminal.height,
            text.utf8.count(where: { $0 == UInt8(ascii: "\n") }) >= height
        {
            becomePager(of: Array(text.forThisReader.utf8))
        }
        try write(text)
    }

    /// Becomes the program that PAGER names, or less, if it is installed; returns if it cannot.
    private static func becomePager(of text: [UInt8]) {
        guard let file = tmpfile(), writeAll(text, to: fileno(file)) == nil, lseek(fileno(file), 0, SEEK_SET) == 0,
            dup2(fileno(file), STDIN_FILENO) == STDIN_FILENO
        else { return }
        // Colors stay, and a text that fits after all ends it (less(1)).
        setenv("LESS", "FRX", 0)
        let script = #"pager=${PAGER-less}; command -v "${pager%% *}" >/dev/null || pager=cat; exec $pager"#
        var arguments = ["sh", "-c", script].map { (word: String) in strdup(word) } + [nil]
        Program.signals.restore()
        execv("/bin/sh", &arguments)
    }

    static func write(_ bytes: [UInt8]) throws {
        guard let error = writeAll(bytes, to: STDOUT_FILENO, waitingForReader: true) else { return }
        if error == EPIPE { throw ClosedOutput() }
        throw CommandFailure(.inputOutput, "standard output cannot be written: \(String(cString: strerror(error)))")
    }

    /// Whether the reader has closed its end: hours may pass without a write that would show it.
    static var isClosed: Bool {
        var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&output, 1, 0) > 0 && output.revents & Int16(POLLERR | POLLNVAL) != 0
    }
}

enum StandardError {
    /// Writes at once, and ignores errors: there is no other place to report them.
    static func write(_ text: String) {
        _ = writeAll(Array(text.forThisReader.utf8), to: STDERR_FILENO, waitingForReader: true)
    }
}

extension String {
    fileprivate var forThisReader: String {
        let text = LocaleCharacters.areUnicode ? self : drawnInASCII
        return Self.isForWorkflow ? text.withoutWorkflowCommands : text
    }

    /// Whether the output goes to the log of a job of GitHub Actions, in which it can be a command.
    private static let isForWorkflow = getenv("GITHUB_ACTIONS").map { strcmp($0, "true") == 0 } ?? false
}

/// The reader has closed standard output, as in `stallwatch top | head`, which ends the command without an error.
struct ClosedOutput: Error {
    /// Writes a result that the exit status has, too: it has it also when the reader has closed its end.
    static func ignored(by write: () throws -> Void) throws {
        do { try write() } catch is ClosedOutput {}
    }
}

/// A progress bar on standard error, for work over a second on a terminal.
final class ProgressBar {
    /// To the line's beginning, and clear to its end (ECMA-48).
    static let rewind = "\r\u{1b}[K"

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
        isShown = isatty(STDERR_FILENO) == 1 && Terminal.obeysSequences
        columns = Terminal.size(of: STDERR_FILENO)?.columns ?? 80
        due = monotonicNow() + 1_000_000_000
    }

    /// Shows the progress, at most ten times a second.
    func advance(to done: Int) {
        guard isShown, monotonicNow() >= due else { return }
        due = monotonicNow() + 100_000_000
        isDrawn = true
        StandardError.write(Self.rewind + Self.text(label, done: done, total: total, columns: columns))
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

struct FormatOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Print text, json, markdown, github (annotations and a job summary) or junit (XML).", valueName: "format"))
    var format: OutputFormat?

    @Flag(help: "The same as --format markdown: for an issue or a comment.")
    var markdown = false

    @Flag(help: "The same as --format json.")
    var json = false

    /// Whether a machine shows each stall to a developer, with all that is to be said of it.
    var isForCI: Bool { chosen == .github || chosen == .junit }

    /// Whether the output is one JSON or XML document.
    var isDocument: Bool { [.json, .junit].contains(chosen) }

    var chosen: OutputFormat { format ?? (json ? .json : markdown ? .markdown : .text) }

    func validate() throws {
        if [format != nil, markdown, json].count(where: { $0 }) > 1 {
            throw ValidationError("Give only one of --format, --markdown and --json.")
        }
    }
}

enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
    case text, json, markdown
    case github
    case junit
}

struct TerminalOptions: ParsableArguments {
    enum Color: String, CaseIterable, ExpressibleByArgument {
        case always, auto, never
    }

    @Option(
        help: ArgumentHelp(
            "Use color: always, auto or never. auto: on a terminal, unless NO_COLOR is set.", valueName: "when"))
    var color = Color.auto

    var terminal: Terminal {
        var terminal = Terminal.standardOutput
        if color != .auto { terminal.hasColor = color == .always }
        return terminal
    }
}

struct TextOrJSONOptions: ParsableArguments {
    @OptionGroup var terminalOptions: TerminalOptions

    @Flag(help: "Print JSON.")
    var json = false

    /// Writes a value; `isLast` if nothing follows, so that a pager may take the command's place.
    func write(
        _ value: @autoclosure () -> some Encodable, isLast: Bool = false, text: (Terminal) throws -> String
    ) throws {
        if json { return try StandardOutput.write(JSONOutput.bytes(value())) }
        let text = try text(terminalOptions.terminal)
        if isLast { try StandardOutput.writeLast(text) } else { try StandardOutput.write(text) }
    }
}

struct Joined<Base: Encodable, Others: Encodable>: Encodable {
    let base: Base
    let others: Others

    func encode(to encoder: any Encoder) throws {
        try base.encode(to: encoder)
        try others.encode(to: encoder)
    }
}

enum JSONOutput {
    /// Encodes a value with sorted keys, without controls that a terminal obeys, and with a line feed at the end.
    static func bytes(_ value: some Encodable, isIndented: Bool = true) -> [UInt8] {
        PlainJSON.escaped(encodeJSON(value, isIndented: isIndented))
    }
}
