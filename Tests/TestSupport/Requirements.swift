import Foundation
import StackCapture
import StallReports
package import Testing

/// The exit status of a program that lacks what it needs (sysexits.h).
private let unavailable: Int32 = 69

/// Says in one line that the current test cannot judge something here; `make test` counts it as a test that was not run.
package func notRun(_ reason: String) {
    let test = Test.current
    print("➜ Test \(test?.displayName ?? test?.name ?? "?") not run: \(reason)")
}

/// What a machine may lack: where it is missing, the test is not run.
extension Trait where Self == ConditionTrait {
    package static func needs(_ program: String) -> Self {
        .enabled(if: Command.find(program) != nil, "\(program) is not installed")
    }

    /// Needs modules of Python, which are those of Debian or of `scripts/install-python-packages.sh`.
    package static func needsPython(_ modules: [String]) -> Self {
        .enabled(if: Python.has(modules), "Python lacks one of \(modules.joined(separator: ", "))")
    }

    /// Needs Chromium, its driver, and what controls and checks it.
    package static var needsBrowser: Self {
        .enabled(
            if: ["/usr/bin/chromium", "/usr/bin/chromedriver", Python.axe].allSatisfy {
                FileManager.default.fileExists(atPath: $0)
            } && Python.has(["selenium"]),
            "Chromium, its driver, Selenium or axe is not installed")
    }

    /// Needs the right to stop threads by ptrace(2), which a container may refuse.
    package static var needsPtrace: Self {
        .enabled(if: mayUsePtrace, "ptrace(2) is refused")
    }
}

/// Whether threads of the own process may be stopped by ptrace(2).
package let mayUsePtrace: Bool = {
    guard let engine = try? CUnwindEngine() else { return false }
    return ThreadCapture(engine: engine).methods.contains(.ptrace)
}()

package enum Python {
    private static let packages = Repository.root.appendingPathComponent(".build/python").path

    /// The script that finds faults of a page.
    package static let axe = packages + "/axe_core_python/axe.min.js"

    /// Whether the first Python on PATH or Debian's has all modules.
    fileprivate static func has(_ modules: [String]) -> Bool {
        ["python3", "/usr/bin/python3"].contains { python in
            let output = try? Command(
                program: "/usr/bin/env", arguments: [python, "-c", "import \(modules.joined(separator: ", "))"],
                environment: ["PYTHONPATH": packages]
            ).run()
            return output?.reason == .exit && output?.status == 0
        }
    }
}

extension Command.Output {
    /// Expects that a reader of the product's output has found no fault; one that lacks a package was not run.
    package func expectNoFault(sourceLocation: SourceLocation = #_sourceLocation) {
        guard status != unavailable else { return notRun(text.split(separator: "\n").last.map(String.init) ?? "") }
        #expect(reason == .exit && status == 0, "\(text)", sourceLocation: sourceLocation)
    }
}
