import ArgumentParser
import Foundation
import TextOutput

struct FormatOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Print text, json, markdown, github (annotations and a job summary) or junit (XML).", valueName: "format"))
    var format: OutputFormat?

    @Flag(help: "The same as --format markdown: for an issue or a comment.")
    var markdown = false

    @Flag(help: "The same as --format json.")
    var json = false

    var chosen: OutputFormat { format ?? (json ? .json : markdown ? .markdown : .text) }

    func validate() throws {
        if [format != nil, markdown, json].count(where: { $0 }) > 1 {
            throw ValidationError("Give only one of --format, --markdown and --json.")
        }
    }
}

enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
    case text, json, markdown
    /// Annotations for GitHub Actions, with a job summary in Markdown.
    case github
    /// The XML of JUnit, which CI systems read.
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

/// The options of commands that print text or JSON.
struct TextOrJSONOptions: ParsableArguments {
    @OptionGroup var terminalOptions: TerminalOptions

    @Flag(help: "Print JSON.")
    var json = false

    /// Prints a value as JSON, or the text.
    func write(_ value: @autoclosure () -> some Encodable, text: (Terminal) throws -> String) throws {
        if json { return try StandardOutput.write(JSONOutput.bytes(value())) }
        try StandardOutput.write(text(terminalOptions.terminal))
    }
}

enum JSONOutput {
    /// Encodes a value with sorted keys, without controls that a terminal obeys, and with a line feed at the end.
    static func bytes(_ value: some Encodable, isIndented: Bool = true) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
        return PlainJSON.escaped([UInt8](try encoder.encode(value))) + [UInt8(ascii: "\n")]
    }
}
