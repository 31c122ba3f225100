import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import TextOutput

@main
enum Program {
    static let signals = InheritedSignals()

    static func main() {
        _ = signals
        // A reader that goes away (`| head`) is an error of write(2), which is handled, and not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        Interruption.prepare()
        do {
            let given = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)).dropFirst()
            let arguments = try Invocation.arguments(given.compactMap { $0.map { pathText(cString: $0) } })
            var command = try StallWatchCommand.parseAsRoot(arguments)
            try command.run()
        } catch let failure as CommandFailure {
            StandardError.write("Error: \(failure.sentence.printable)\n")
            exit(failure.status.rawValue)
        } catch is ClosedOutput {
            exit(EXIT_SUCCESS)
        } catch let none as NoStalls {
            none.write()
            exit(EXIT_SUCCESS)
        } catch  where StallWatchCommand.exitCode(for: error) == .validationFailure {
            // It has words of the command line.
            let lines = StallWatchCommand.fullMessage(for: error).split(separator: "\n")
            StandardError.write(lines.map { String($0).printable + "\n" }.joined())
            exit(CommandFailure.Status.usage.rawValue)
        } catch {
            StallWatchCommand.exit(withError: error)
        }
    }
}

struct StallWatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch",
        abstract: "Shows what stalled, where and why, from stall reports.",
        discussion: """
            Every command that reads reports takes report files, NDJSON files, directories (searched recursively), or - for \
            standard input; without one it reads the folder named stalls. A word that is no path names reports: four or more \
            digits of a fingerprint or an id, or a row of `top` from 1 on. A report that is given twice counts once.

            A live process is given by its id or its name; without either, it is the only one with a monitor.

            Examples:
              stallwatch                             which stalls cost most
              stallwatch show 1                      the newest of the costliest stalls
              stallwatch explain lock                what a cause means, and how to mend it
              stallwatch top stalls --since 2h --cause lock --min 500ms
              stallwatch diff before after --fail-on new,worse
              stallwatch tail stalls                 stalls as they happen
              stallwatch baseline update reports     known stalls, which tests excuse
              stallwatch run gedit notes.txt         stalls of a program you do not build
              stallwatch test swift test             run tests, and say what hangs
              stallwatch stacks notes                all threads of a live process
              stallwatch tasks 4700                  its Swift tasks, and what they await
              stallwatch watch                       its loops and stalls on a live screen
              stallwatch doctor                      what works here, and what to set
              stallwatch doctor notes --prove        whether its monitor finds stalls
              stallwatch health /run/notes/health    whether it makes progress, for probes

            With a path instead of a command, or with nothing, the tool shows `top`. On a terminal, a text that is longer than \
            the screen is shown by the program that PAGER names, or by less.

            Exit status: 0 for an answer, also that there are no stalls. 1 when nothing is found (no match, no such process) or a \
            gate fails: `diff --fail-on` finds a listed change, `health` a stuck loop. 2 for a wrong command line, for a path that \
            is not there, and when `health` cannot tell. `run` and `test` have the program's own status. Else those of sysexits.h: \
            64 a command or option that was removed, 65 faulty reports, 71 refused by the system, 73 a file cannot be created, \
            74 a file cannot be read or written, 75 a process does not answer, 77 no permission.

            Completions for a shell: stallwatch --generate-completion-script bash (or zsh, or fish).
            """,
        version: "stallwatch \(StallWatchVersion.current)",
        groupedSubcommands: [
            CommandGroup(
                name: "Report",
                subcommands: [
                    TopCommand.self, ShowCommand.self, TreeCommand.self, StatsCommand.self, TailCommand.self,
                    HTMLCommand.self, ExportCommand.self, SymbolicateCommand.self, ExplainCommand.self,
                ]),
            CommandGroup(
                name: "Live process",
                subcommands: [
                    RunCommand.self, PsCommand.self, WatchCommand.self, StateCommand.self, StacksCommand.self,
                    TasksCommand.self, DoctorCommand.self,
                ]),
            CommandGroup(name: "CI", subcommands: [TestCommand.self, DiffCommand.self, BaselineCommand.self]),
            CommandGroup(name: "Fleet", subcommands: [HealthCommand.self]),
        ]
    )
}

struct InheritedSignals {
    private var mask = sigset_t()
    private var pipe = sigaction()

    init() {
        pthread_sigmask(SIG_BLOCK, nil, &mask)
        sigaction(SIGPIPE, nil, &pipe)
    }

    /// Restores them on the calling thread, right before execve(2), which resets all handlers by itself.
    func restore() {
        var (mask, pipe) = (mask, pipe)
        sigaction(SIGPIPE, &pipe, nil)
        pthread_sigmask(SIG_SETMASK, &mask, nil)
    }
}

enum Invocation {
    /// The command as the user types it, for texts that name the next one: a plug-in of the package manager sets it.
    static let name = getenv("STALLWATCH_COMMAND").map { String(cString: $0) } ?? "stallwatch"

    /// The arguments with the command that they leave out, which is `top`.
    ///
    /// - Throws: A ``CommandFailure`` with the nearest command for a word that is neither a command nor a path.
    static func arguments(
        _ given: [String], isThere: (String) -> Bool = { access($0, F_OK) == 0 }
    ) throws(CommandFailure) -> [String] {
        guard let first = given.first else { return ["top"] }
        let word = first == "help" && given.count > 1 ? given[1] : first
        if let removed = Removed.failure(given) { throw removed }
        if first == "-" { return ["top"] + given }
        guard !word.hasPrefix("-"), !commands.contains(word) else { return given }
        if word == first, isThere(word) { return ["top"] + given }
        // Reports are named by digits, but for `show`.
        let near = nearestCommand(to: word) ?? (word.allSatisfy(\.isHexDigit) ? "show \(word)" : nil)
        let suggestion = near.map { " Did you mean '\($0)'?" } ?? ""
        throw CommandFailure(
            .usage, "There is no command or file '\(word)'.\(suggestion) See '\(name) --help' for the commands.")
    }

    static var commands: [String] {
        StallWatchCommand.configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    }

    /// The command with the fewest wrong letters; `nil` if more than a third of them, rounded up, are wrong.
    static func nearestCommand(to word: String) -> String? {
        let distances = commands.map { (name: $0, distance: editDistance(Array(word.utf8), Array($0.utf8))) }
        guard let best = distances.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance * 3 <= max(word.utf8.count, 3) + 2 ? best.name : nil
    }

    /// The letters that have to be added, removed, replaced or swapped with the next one.
    static func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var rows = [Array(0...right.count)]
        for (i, letter) in left.enumerated() {
            var row = [i + 1]
            for (j, other) in right.enumerated() {
                var best = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (letter == other ? 0 : 1))
                if i > 0, j > 0, letter == right[j - 1], left[i - 1] == other {
                    best = min(best, rows[i - 1][j - 1] + 1)
                }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}

enum Removed {
    static let table: [(words: String, instead: String)] = [
        ("ship", "let a log agent read the NDJSON sink, as docs/guides/Fleet.md shows"),
        ("profile", "use swift-profile-recorder or perf"),
        ("validate", "check reports against Schemas/stall-report.schema.json with a JSON Schema validator"),
        ("show --threads", "use --all, which has other threads, too"),
        ("export --format perfetto", "use --format firefox, which shows each loop's turns, too"),
        ("export --format otlp-profiles", "use --format pprof"),
        ("export --format speedscope", "use --format collapsed or pprof, which speedscope opens"),
        ("export --format perf", "use --format firefox or collapsed"),
    ]

    /// Returns the refusal of a command line with removed words; `nil` if it has none.
    static func failure(_ arguments: [String]) -> CommandFailure? {
        let given = arguments.drop { $0 == "help" }.flatMap { argument in
            argument.hasPrefix("--") ? argument.split(separator: "=", maxSplits: 1) : [Substring(argument)]
        }
        for (text, instead) in table {
            let words = text.split(separator: " ")
            guard given.first == words.first, given.dropFirst().contains(words.dropFirst()) else { continue }
            return CommandFailure(.removed, "'stallwatch \(text)' was removed: \(instead).")
        }
        return nil
    }
}
