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
        let place = finding.file.map { "\n" + $0 + (finding.line.map { ":\($0)" } ?? "") } ?? ""
        return start + ">\n"
            + "      <failure type=\(attribute(finding.cause)) message=\(attribute(finding.message))>"
            + escaped(finding.message + place) + "</failure>\n    </testcase>\n"
    }

    private func attribute(_ text: String) -> String { "\"" + escaped(text) + "\"" }

    /// The text without markup, and without the control characters that XML 1.0 forbids.
    private func escaped(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\n", "\t": result.unicodeScalars.append(scalar)
            case "\u{0}"..<"\u{20}", "\u{fffe}", "\u{ffff}": result += "\u{fffd}"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }
}
