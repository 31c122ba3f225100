import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct HelpTests {
    private static let commands = StallWatchCommand.configuration.subcommands.map { $0.configuration }

    /// Their words on the command line, with those of a command that has commands of its own.
    private static let words = commands.flatMap { command in
        let name = command.commandName ?? ""
        let inner = command.subcommands.map { "\(name) \($0.configuration.commandName ?? "")" }
        return inner.isEmpty ? [name] : inner
    }

    @Test(arguments: words) func `every command has help with examples`(words: String) throws {
        let command = words.split(separator: " ").map(String.init)
        let result = try Tool.run(command + ["--help"])
        #expect(result.output.hasPrefix("OVERVIEW: "))
        #expect(result.status == 0 && result.errors == "" && result.output.contains("Examples:\n  "), "\(result)")
        #expect(result.output.contains("stallwatch \(words) "))
        #expect(result.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(Self.areWhole(result.output), "\(result)")
        #expect(try Tool.run(["help"] + command).output == result.output)
    }

    /// Whether no line of the examples is broken: they have no indentation after the break.
    private static func areWhole(_ help: String) -> Bool {
        let lines = help.split(separator: "\n", omittingEmptySubsequences: false)
        let examples = lines.drop { $0 != "Examples:" }.dropFirst().prefix { !$0.isEmpty }
        return !examples.isEmpty && examples.allSatisfy { $0.hasPrefix("  ") }
    }

    @Test func `every command says in a sentence what it does`() {
        for command in Self.commands {
            #expect(command.abstract.hasSuffix(".") && command.abstract.count > 20, "\(command.commandName ?? "?")")
        }
    }

    @Test func theToolHasHelp() throws {
        let result = try Tool.run(["--help"])
        #expect(result.status == 0 && result.errors == "", "\(result)")
        #expect(result.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(Self.areWhole(result.output), "\(result)")
        for group in ["REPORT", "LIVE PROCESS", "CI", "FLEET"] {
            #expect(result.output.contains("\n\(group) SUBCOMMANDS:\n"))
        }
        for command in Self.commands {
            #expect(result.output.contains("\n  \(command.commandName ?? "?") "))
        }
    }

    @Test(arguments: [[], ["top"], ["show"], ["show", "1"], ["tree"], ["html"], ["stats"]])
    func `without a folder named stalls nothing has stalled`(words: [String]) throws {
        let result = try Tool.run(words, in: try TemporaryDirectory())
        #expect(result.status == 0 && result.output == "", "\(result)")
        #expect(result.errors.hasPrefix("No stalls in stalls/. There is no such folder in /"), "\(result)")
    }

    @Test func `without a path a command reads the folder named stalls`() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write("stalls/notes.txt", "no report")
        #expect(try Tool.run([], in: scratch).errors.hasPrefix("No stalls in stalls/.\n"))
        try scratch.write([ReportFixture(number: 1)], in: "stalls/")
        for command in ["top", "show", "tree"] {
            let output = try Tool.run([command, "stalls"], in: scratch).output
            #expect(output.contains("NoteStore.save"))
            #expect(try Tool.run([command], in: scratch).output == output)
        }
        let top = try Tool.run(["top", "stalls"], in: scratch).output
        #expect(try Tool.run([], in: scratch).output == top)
        #expect(try Tool.run(["stalls"], in: scratch).output == top)
        #expect(try Tool.run(["stalls/"], in: scratch).output.contains("NoteStore.save"))
        let input = ReportFixture(number: 1).json
        #expect(try Tool.run(["-"], input: input).output.contains("NoteStore.save"))
    }

    @Test func `a path may follow options and never shadows a command`() throws {
        func arguments(_ words: String...) throws -> [String] {
            let isThere = { (path: String) in ["stalls", "top", "test"].contains(path) }
            return try Invocation.arguments(words, isThere: isThere)
        }
        #expect(try arguments() == ["top"])
        #expect(try arguments("stalls", "--json") == ["top", "stalls", "--json"])
        for words in [["top", "x"], ["test", "--", "x"], ["--help"], ["help", "show"], ["help"], ["-h"]] {
            #expect(try Invocation.arguments(words, isThere: { _ in true }) == words)
        }
    }

    @Test(
        arguments: [
            ("shwo", "show"), ("stack", "stacks"), ("tpo", "top"), ("symbolise", "symbolicate"),
            ("xyzzy", nil), ("nowhere/stalls", nil),
        ] as [(String, String?)])
    func `a mistyped command is answered with the nearest one`(word: String, nearest: String?) throws {
        #expect(Invocation.nearestCommand(to: word) == nearest)
        for words in [[word], ["help", word]] {
            let result = try Tool.run(words)
            #expect(result.status == 2 && result.output == "", "\(result)")
            let suggestion = nearest.map { " Did you mean '\($0)'?" } ?? ""
            #expect(
                result.errors
                    == "Error: There is no command or file '\(word)'.\(suggestion) See 'stallwatch --help' for the commands.\n"
            )
        }
    }

    @Test func `digits that name a report are taken for those of show`() throws {
        let result = try Tool.run(["1"], in: try TemporaryDirectory())
        #expect(result.status == 2 && result.errors.contains("Did you mean 'show 1'?"), "\(result)")
    }

    @Test(arguments: Removed.table.map(\.words))
    func `a removed command or option names what to use instead`(words: String) throws {
        let instead = try #require(Removed.table.first { $0.words == words }).instead
        let result = try Tool.run(words.split(separator: " ").map(String.init) + ["stalls"])
        #expect(result.errors == "Error: 'stallwatch \(words)' was removed: \(instead).\n")
        #expect(result.status == 64 && result.output == "", "\(result)")
    }

    @Test func `only the removed words are refused`() {
        #expect(Removed.failure(["help", "ship"])?.status == .removed)
        #expect(Removed.failure(["export", "--format=perfetto", "x"])?.status == .removed)
        #expect(Removed.failure(["export", "perfetto", "--format", "pprof"]) == nil)
        #expect(Removed.failure(["top", "ship"]) == nil)
    }

    @Test func `texts name the command that was typed`() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write([ReportFixture(number: 1)], in: "stalls/")
        let typed = ["STALLWATCH_COMMAND": "swift package stalls"]
        for command in ["top", "show"] {
            let output = try Tool.run([command], in: scratch, environment: typed).output
            #expect(output.contains("\nNext: swift package stalls "), "\(output)")
        }
    }

    @Test func `it says the newest version of the changelog`() throws {
        let url = Repository.root.appendingPathComponent("CHANGELOG.md")
        let newest = try String(contentsOf: url, encoding: .utf8).firstMatch(of: /## \[(\d+\.\d+\.\d+)\]/)
        #expect(try Tool.run(["--version"]).output == (newest.map { "stallwatch \($0.1)\n" } ?? "none"))
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func shellsAreGivenCompletions(shell: String) throws {
        let result = try Tool.run(["--generate-completion-script", shell])
        #expect(result.status == 0)
        #expect(result.output.contains("stallwatch") && result.output.contains("symbolicate"))
    }
}
