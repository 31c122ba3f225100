import ArgumentParser

/// The options that choose a format.
struct FormatOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Print text, json, markdown, github (annotations and a job summary) or junit (XML).", valueName: "format"))
    var format: OutputFormat?

    @Flag(help: "The same as --format markdown: for an issue or a comment.")
    var markdown = false

    @Flag(help: "The same as --format json.")
    var json = false

    /// The chosen format.
    var chosen: OutputFormat { format ?? (json ? .json : markdown ? .markdown : .text) }

    func validate() throws {
        if [format != nil, markdown, json].count(where: { $0 }) > 1 {
            throw ValidationError("Give only one of --format, --markdown and --json.")
        }
    }
}
