import Glibc
import LinuxSupport

/// The libraries that `stallwatch test` and `stallwatch run` load into other programs.
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
        let directory = try directory()
        return [
            "LD_PRELOAD": preloaded(in: directory),
            "STALLWATCH_HANG_LIBRARY": "\(directory)/\(names.agent)",
            "STALLWATCH_HANG_REQUESTS": requests,
        ]
    }

    /// Returns the variables of a program that is watched from its start.
    ///
    /// - Parameters:
    ///   - settings: What is watched.
    ///   - output: The directory for reports.
    /// - Returns: The variables.
    /// - Throws: If the libraries are missing, or are where LD_PRELOAD cannot name them.
    static func environment(running settings: RunSettings, output: ReportOutput) throws(CommandFailure) -> [String:
        String]
    {
        let directory = try directory()
        guard !directory.contains(where: { $0 == ":" || $0.isWhitespace }) else {
            throw CommandFailure(
                .noInput,
                "\(names.preload) is in \(directory), and LD_PRELOAD cannot name a path with a space or a colon: "
                    + "install the tool in another directory")
        }
        return [
            "LD_PRELOAD": preloaded(in: directory),
            "STALLWATCH_RUN_LIBRARY": "\(directory)/\(names.agent)",
            "STALLWATCH_RUN_OUTPUT": output.path,
            "STALLWATCH_RUN_SETTINGS": settings.text,
        ]
    }

    /// Returns the value of LD_PRELOAD.
    ///
    /// Other libraries that are loaded in this way stay.
    private static func preloaded(in directory: String) -> String {
        let before = getenv("LD_PRELOAD").map { ":" + String(cString: $0) } ?? ""
        return "\(directory)/\(names.preload)\(before)"
    }

    private static func directory() throws(CommandFailure) -> String {
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
        return directory
    }
}
