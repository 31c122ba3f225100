package import Foundation

/// The checkout of this package.
package enum Repository {
    /// The package's directory.
    package static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The directory of the programs that tests compile or run in addition to the package's targets.
    package static let support = root.appendingPathComponent("Tests/Support")

    /// Runs `scripts/validate-reports.py` on a directory of reports.
    ///
    /// - Parameters:
    ///   - path: The directory's path.
    ///   - isStrict: Whether a field that is not in the schema is a fault.
    /// - Returns: The script's output and status. A nonzero status is not an error here.
    /// - Throws: An error if the script cannot be started.
    package static func validateReports(_ path: String, isStrict: Bool = true) throws -> Command.Output {
        let script = root.appendingPathComponent("scripts/validate-reports.py").path
        let options = isStrict ? ["--strict"] : []
        return try Command(program: "/usr/bin/env", arguments: ["python3", script] + options + [path]).run()
    }
}
