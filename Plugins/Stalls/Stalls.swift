import Foundation
import PackagePlugin

/// `swift package stalls …` builds the tool `stallwatch` with the package's own build, and runs it.
@main
struct Stalls: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) throws {
        // Not a dependency of the plug-in: its product has another name than its target, which the package manager then
        // does not find (swift-package-manager issue 8831).
        let build = try packageManager.build(
            .product("stallwatch"), parameters: .init(configuration: .debug, logging: .concise))
        let programs = build.builtArtifacts.filter { $0.kind == .executable }
        guard build.succeeded, let tool = programs.first(where: { $0.url.lastPathComponent == "stallwatch" }) else {
            return Diagnostics.error("The tool stallwatch cannot be built:\n\(build.logText)")
        }
        if needsTerminal(arguments) {
            // Keys go to the package manager: this process is not in the terminal's foreground.
            let words = [tool.url.path] + arguments
            print("This command reads keys, which the package manager does not pass on. Run the tool itself:")
            print("  \(words.joined(separator: " "))")
            exit(2)
        }
        exit(try run(tool.url, arguments))
    }

    private func needsTerminal(_ arguments: [String]) -> Bool {
        arguments.first == "watch" && !["--once", "--json", "--help", "-h"].contains { arguments.contains($0) }
    }

    /// Returns the tool's exit status.
    private func run(_ tool: URL, _ arguments: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = tool
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging([
            "STALLWATCH_COMMAND": "swift package stalls", "PAGER": "cat",
        ]) { $1 }
        // A plug-in's output is a pipe to the package manager. If that writes to a terminal, the tool does, too: it then
        // knows the width, and uses colors.
        let output = FileHandle(forWritingAtPath: "/proc/\(getppid())/fd/1")
        if let output, isatty(output.fileDescriptor) == 1 { process.standardOutput = output }
        try process.run()
        process.waitUntilExit()
        return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
    }
}
