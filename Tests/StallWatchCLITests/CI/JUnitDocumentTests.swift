import Foundation
import Testing

@testable import StallWatchCLI

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
