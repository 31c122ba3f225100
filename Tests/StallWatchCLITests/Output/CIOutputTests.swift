import Foundation
import Testing

@testable import StallWatchCLI

@Suite struct GitHubAnnotationsTests {
    private func finding(_ severity: Finding.Severity, file: String? = "/src/a.swift", line: Int? = 7) -> Finding {
        Finding(
            severity: severity, loop: "main", title: "300 ms in f(_:), g",
            message: "100 %\nof it, blocked: in \"read\"",
            cause: "io", file: file, line: line, milliseconds: 300
        )
    }

    @Test func propertiesAndMessagesAreEscaped() {
        #expect(
            GitHubAnnotations.text([finding(.error)], root: "/src")
                == "::error file=a.swift,line=7,title=300 ms in f(_%3A)%2C g::100 %25%0Aof it, blocked: in \"read\"\n"
        )
    }

    @Test func withoutAFileThereIsNoLine() {
        let text = GitHubAnnotations.text([finding(.warning, file: nil)], root: "/src")
        #expect(text.hasPrefix("::warning title=300 ms"))
    }

    @Test func filesInTheCheckoutAreRelative() {
        #expect(GitHubAnnotations.relative("/src/a/b.swift", to: "/src") == "a/b.swift")
        #expect(GitHubAnnotations.relative("/srcs/b.swift", to: "/src") == "/srcs/b.swift")
        #expect(GitHubAnnotations.relative("b.swift", to: "/src") == "b.swift")
    }

    @Test func whatGitHubDropsIsCounted() {
        let many = Array(repeating: finding(.warning), count: 12) + [finding(.error), finding(.passed)]
        let lines = GitHubAnnotations.text(many, root: "/src").split(separator: "\n")
        #expect(lines.count == 12)
        #expect(lines.count { $0.hasPrefix("::warning ") } == GitHubAnnotations.maximumShown)
        #expect(lines.first?.hasPrefix("::error ") == true)
        #expect(lines.last == "::notice title=StallWatch::…and 2 more, which the job's summary has.")
        #expect(GitHubAnnotations.text([finding(.passed)], root: "/src") == "")
    }
}

@Suite struct JUnitDocumentTests {
    private func finding(_ severity: Finding.Severity) -> Finding {
        Finding(
            severity: severity, loop: "main", title: "300 ms in <T>(\"a\" & b)", message: "Blocked\u{1}.", cause: "io",
            file: "/src/a.swift", line: 7, milliseconds: 300
        )
    }

    @Test func eachFindingIsATestCase() {
        #expect(
            JUnitDocument(findings: [finding(.warning), finding(.passed)]).text == """
                <?xml version="1.0" encoding="UTF-8"?>
                <testsuites tests="2" failures="1" errors="0" time="0.600">
                  <testsuite name="stallwatch" skipped="0" tests="2" failures="1" errors="0" time="0.600">
                    <testcase classname="main" name="300 ms in &lt;T&gt;(&quot;a&quot; &amp; b)" time="0.300">
                      <failure type="io" message="Blocked\u{fffd}.">Blocked\u{fffd}.
                /src/a.swift:7</failure>
                    </testcase>
                    <testcase classname="main" name="300 ms in &lt;T&gt;(&quot;a&quot; &amp; b)" time="0.300"/>
                  </testsuite>
                </testsuites>

                """
        )
    }

    @Test func noStallIsATestThatPassed() {
        let text = JUnitDocument(findings: []).text
        #expect(text.contains("<testsuites tests=\"1\" failures=\"0\""))
        #expect(text.contains("name=\"no stalls\""))
    }
}
