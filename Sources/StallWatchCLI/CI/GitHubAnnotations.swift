/// Annotations for GitHub Actions: lines of output that the runner shows at a file's line.
///
/// The grammar is `::severity file=…,line=…,title=…::message`, with some characters as percent codes (docs.github.com,
/// "Workflow commands for GitHub Actions").
enum GitHubAnnotations {
    /// GitHub shows ten annotations of each severity for a step, and drops the rest.
    static let maximumShown = 10

    /// Returns the lines, each with a line feed; a last one tells the number that GitHub would drop.
    ///
    /// - Parameters:
    ///   - findings: What to annotate; those that passed are left out.
    ///   - root: The checkout, without a slash at the end. Files in it are named relative to it.
    /// - Returns: The lines.
    static func text(_ findings: [Finding], root: String) -> String {
        var text = ""
        var dropped = 0
        for severity in [Finding.Severity.error, .warning] {
            let found = findings.filter { $0.severity == severity }
            text += found.prefix(maximumShown).map { line(for: $0, root: root) + "\n" }.joined()
            dropped += max(found.count - maximumShown, 0)
        }
        if dropped > 0 {
            text += "::notice title=StallWatch::…and \(dropped) more, which the job's summary has.\n"
        }
        return text
    }

    private static func line(for finding: Finding, root: String) -> String {
        var properties: [String] = []
        if let file = finding.file {
            properties.append("file=" + property(relative(file, to: root)))
            if let line = finding.line, line > 0 { properties.append("line=\(line)") }
        }
        properties.append("title=" + property(finding.title))
        return "::\(finding.severity.rawValue) \(properties.joined(separator: ","))::\(data(finding.message))"
    }

    static func relative(_ file: String, to root: String) -> String {
        file.hasPrefix(root + "/") ? String(file.dropFirst(root.utf8.count + 1)) : file
    }

    private static func data(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "%": result += "%25"
            case "\r": result += "%0D"
            case "\n": result += "%0A"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }

    private static func property(_ text: String) -> String {
        data(text).replacing(":", with: "%3A").replacing(",", with: "%2C")
    }
}
