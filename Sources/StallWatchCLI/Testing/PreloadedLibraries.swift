import Glibc
import LinuxSupport

/// The libraries that `stallwatch test` loads into test processes.
///
/// They are beside the tool, or in the lib directory beside its own.
enum PreloadedLibraries {
    static let names = (preload: "libStallWatchPreload.so", agent: "libStallWatchAgent.so")

    /// Returns the variables of a command whose test processes can be asked.
    ///
    /// - Parameter requests: The directory in which they offer requests.
    /// - Returns: The variables.
    /// - Throws: If the libraries are missing.
    static func environment(requests: String) throws(CommandFailure) -> [String: String] {
        let tool = readLink("/proc/self/exe") ?? ""
        let own = tool.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        let directories = [own, own + "/../lib"]
        guard let directory = directories.first(where: { access("\($0)/\(names.preload)", R_OK) == 0 }),
            access("\(directory)/\(names.agent)", R_OK) == 0
        else {
            throw CommandFailure(
                .noInput,
                "\(names.preload) and \(names.agent) are not in \(own): build them beside the tool, "
                    + "with swift build --product StallWatchPreload and --product StallWatchAgent, or run make install-cli"
            )
        }
        // Other libraries that are loaded in this way stay.
        let before = getenv("LD_PRELOAD").map { ":" + String(cString: $0) } ?? ""
        return [
            "LD_PRELOAD": "\(directory)/\(names.preload)\(before)",
            "STALLWATCH_HANG_LIBRARY": "\(directory)/\(names.agent)",
            "STALLWATCH_HANG_REQUESTS": requests,
        ]
    }
}
