import ArgumentParser
import TextOutput

/// Options for text output.
struct TerminalOptions: ParsableArguments {
    /// When to use color.
    enum Color: String, CaseIterable, ExpressibleByArgument {
        case always, auto, never
    }

    @Option(
        help: ArgumentHelp(
            "Use color: always, auto or never. auto: on a terminal, unless NO_COLOR is set.", valueName: "when"))
    var color = Color.auto

    /// Standard output with the chosen color.
    var terminal: Terminal {
        var terminal = Terminal.standardOutput
        if color != .auto { terminal.hasColor = color == .always }
        return terminal
    }
}
