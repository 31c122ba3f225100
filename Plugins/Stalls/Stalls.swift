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
        if let reason = refusal(arguments) {
            let words = ([tool.url.path] + arguments).map {
                "'" + $0.replacingOccurrences(of: "'", with: #"'\''"#) + "'"
            }
            print("\(reason) Run the tool itself:\n  \(words.joined(separator: " "))")
            exit(2)
        }
        exit(try run(tool.url, arguments))
    }

    /// Returns why the command does not work below the package manager; `nil` if it does.
    private func refusal(_ arguments: [String]) -> String? {
        guard let command = arguments.first, !["--help", "-h"].contains(where: arguments.contains) else { return nil }
        switch command {
        case "watch" where !["--once", "--json"].contains(where: arguments.contains):
            // Keys go to the package manager: this process is not in the terminal's foreground.
            return "This command reads keys, which the package manager does not pass on."
        case "test":
            // `swift test` would wait for this command's lock on the build folder, and this command for it.
            return "The package manager, which runs this command, does not run tests meanwhile."
        case "run": return "A program that runs below the package manager has no terminal, and no keys."
        default: return nil
        }
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
        // The tool has a process group of its own: Ctrl-C ends the package manager, and that this process.
        signal(SIGTERM, SIG_IGN)
        let ending = DispatchSource.makeSignalSource(signal: SIGTERM)
        ending.setEventHandler { process.terminate() }
        ending.resume()
        defer { ending.cancel() }
        process.waitUntilExit()
        return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
    }
}
