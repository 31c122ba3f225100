import ArgumentParser

/// The format of a command's output.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
    case text, json, markdown
    /// Annotations for GitHub Actions, with a job summary in Markdown.
    case github
    /// The XML of JUnit, which CI systems read.
    case junit
}
