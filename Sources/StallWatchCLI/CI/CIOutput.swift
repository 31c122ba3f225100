import Foundation
import LinuxSupport
import Glibc

/// Output for CI systems.
enum CIOutput {
    /// Prints annotations, and adds Markdown to the summary of the job.
    ///
    /// The summary is the file that the variable GITHUB_STEP_SUMMARY names. Without the variable there is none.
    ///
    /// - Throws: A ``CommandFailure`` if the summary cannot be written.
    static func printGitHub(_ findings: [Finding], summary: String) throws {
        let environment = ProcessInfo.processInfo.environment
        let root = environment["GITHUB_WORKSPACE"] ?? FileManager.default.currentDirectoryPath
        try StandardOutput.write(GitHubAnnotations.text(findings, root: root))
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
