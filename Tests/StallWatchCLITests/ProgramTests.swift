import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import StallWatchCLI

/// The complete help texts: `Texts/Help/NAME.txt`.
@Suite struct HelpTests {
    private static let commands = [
        "show", "top", "tree", "diff", "stats", "validate", "tail", "symbolicate", "export", "html", "doctor", "ship",
        "health", "run", "ps", "state", "stacks", "profile", "watch",
    ]

    private func expected(_ name: String) throws -> String {
        try String(
            contentsOf: Repository.root.appendingPathComponent("Tests/StallWatchCLITests/Texts/Help/\(name).txt"),
            encoding: .utf8
        )
    }

    @Test(arguments: commands) func everyCommandHasHelp(command: String) throws {
        let result = try Tool.run([command, "--help"])
        #expect(try result.output == expected(command))
        #expect(result.errors == "")
        #expect(result.status == 0)
        #expect(result.output.contains("Examples:\n  stallwatch \(command) "))
        #expect(try Tool.run(["help", command]).output == result.output)
    }

    @Test func theToolHasHelp() throws {
        let result = try Tool.run(["--help"])
        #expect(result.status == 0)
        #expect(result.errors == "")
        for command in StallWatchCommand.configuration.subcommands {
            #expect(result.output.contains("\n  \(command.configuration.commandName ?? "?") "))
        }
        // Without arguments the tool prints its help.
        #expect(try Tool.run([]).output == result.output)
    }

    @Test func itSaysItsVersion() throws {
        #expect(try Tool.run(["--version"]).output == "0.1.0\n")
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func shellsAreGivenCompletions(shell: String) throws {
        let result = try Tool.run(["--generate-completion-script", shell])
        #expect(result.status == 0)
        #expect(result.output.contains("stallwatch") && result.output.contains("symbolicate"))
    }
}
