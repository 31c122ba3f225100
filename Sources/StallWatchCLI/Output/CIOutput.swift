import Foundation
import Glibc
import LinuxSupport
import StallReports
import TextOutput

enum CIOutput {
    /// Prints annotations, and adds Markdown to the job's summary, the file that GITHUB_STEP_SUMMARY names, if any.
    static func printGitHub(_ findings: [Finding], summary: String) throws {
        let environment = ProcessInfo.processInfo.environment
        let root = environment["GITHUB_WORKSPACE"] ?? FileManager.default.currentDirectoryPath
        // As bytes: these are commands.
        try StandardOutput.write(Array(GitHubAnnotations.text(findings, root: root).utf8))
        guard let path = environment["GITHUB_STEP_SUMMARY"], !path.isEmpty else { return }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw failure(path, errno) }
        defer { close(descriptor) }
        if let error = writeAll(Array(summary.utf8), to: descriptor) { throw failure(path, error) }
    }

    private static func failure(_ path: String, _ error: Int32) -> CommandFailure {
        CommandFailure(
            .cannotCreate,
            "the job's summary cannot be written to \(path) (GITHUB_STEP_SUMMARY): \(String(cString: strerror(error)))"
        )
    }
}

struct Finding: Equatable {
    enum Severity: String, CaseIterable {
        case error, warning
        /// Nothing that a developer has to look at.
        case passed
    }

    var severity: Severity
    var loop: String
    var title: String
    var message: String
    var cause: String
    /// The source file as the report has it; `nil` if no function is to blame, or its file is not known.
    var file: String?
    var line: Int?
    var milliseconds: Double
}

extension StallReport {
    /// Why it stalled and what to try, a line each; `nil` if neither is known.
    var explanation: String? {
        let known = [why, advice.map { "Try: \($0.text)" }].compactMap(\.self)
        return known.isEmpty ? nil : known.joined(separator: "\n")
    }
}

extension Finding {
    init(_ report: StallReport) {
        let duration = report.durationMilliseconds.duration
        self.init(
            severity: .warning, loop: report.loop.label,
            title: report.culprit.map { "\(duration) in \($0.function)" } ?? "\(duration) on \(report.loop.label)",
            message: report.headline + "." + (report.explanation.map { "\n" + $0 } ?? ""),
            cause: report.causeWord, file: report.culprit?.file, line: report.culprit?.line,
            milliseconds: report.durationMilliseconds
        )
    }
}

/// Lines `::severity file=…,line=…,title=…::message` (docs.github.com, "Workflow commands for GitHub Actions").
enum GitHubAnnotations {
    static let maximumShown = 10

    /// A last line tells the number that GitHub would drop; `root` is the checkout, without a slash at the end.
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
            properties.append("file=" + relative(file, to: root).escapedForWorkflowProperty)
            if let line = finding.line, line > 0 { properties.append("line=\(line)") }
        }
        properties.append("title=" + finding.title.escapedForWorkflowProperty)
        let message = finding.message.escapedForWorkflowMessage
        return "::\(finding.severity.rawValue) \(properties.joined(separator: ","))::\(message)"
    }

    static func relative(_ file: String, to root: String) -> String {
        let prefix = (root + "/").utf8
        return file.utf8.starts(with: prefix)
            ? String(decoding: file.utf8.dropFirst(prefix.count), as: UTF8.self) : file
    }
}

/// A document in the XML that JUnit's Ant task writes and CI systems read: a test case for each finding.
struct JUnitDocument {
    let findings: [Finding]

    /// The document; without findings it has one test case that passed.
    var text: String {
        let cases =
            findings.isEmpty
            ? ["    <testcase classname=\"stallwatch\" name=\"no stalls\" time=\"0\"/>\n"] : findings.map(testCase)
        let failures = findings.count { $0.severity != .passed }
        let seconds = findings.reduce(0) { $0 + $1.milliseconds } / 1_000
        let totals = "tests=\"\(cases.count)\" failures=\"\(failures)\" errors=\"0\" time=\"\(seconds.fixed(3))\""
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites \(totals)>
              <testsuite name="stallwatch" skipped="0" \(totals)>
            \(cases.joined())  </testsuite>
            </testsuites>

            """
    }

    private func testCase(_ finding: Finding) -> String {
        let name = "classname=\(attribute(finding.loop)) name=\(attribute(finding.title))"
        let start = "    <testcase \(name) time=\"\((finding.milliseconds / 1_000).fixed(3))\""
        guard finding.severity != .passed else { return start + "/>\n" }
        let place = finding.file.map { $0 + (finding.line.map { ":\($0)" } ?? "") }
        return start + ">\n"
            + "      <failure type=\(attribute(finding.cause)) message=\(attribute(finding.message))>"
            + finding.message.escapedForXML + (place.map { "\n" + $0.escapedForXML } ?? "")
            + "</failure>\n    </testcase>\n"
    }

    private func attribute(_ text: String) -> String { "\"" + text.escapedForXML + "\"" }
}
