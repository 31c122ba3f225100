package import Foundation

/// The package whose tests these are.
package enum Repository {
    /// Its folder.
    package static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// What tests compile or run beside the package's own targets.
    package static let support = root.appendingPathComponent("Tests/Support")

    /// Runs `scripts/validate-reports.py` on a directory of reports.
    ///
    /// If `isStrict` is true, fields that the schema does not have are faults, too.
    package static func validateReports(_ path: String, isStrict: Bool = true) throws -> Command.Output {
        let script = root.appendingPathComponent("scripts/validate-reports.py").path
        let options = isStrict ? ["--strict"] : []
        return try Command(program: "/usr/bin/env", arguments: ["python3", script] + options + [path]).run()
    }
}
