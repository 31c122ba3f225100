import StallReports
import ArgumentParser
import Glibc

/// The tool: reads stall reports and says what they come to.
struct StallWatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch",
        abstract: "Reads stall reports and says what stalled, where and why.",
        discussion: """
            Wherever reports are read, name report files, NDJSON files, directories (searched with all that is in them) or - for \
            standard input.

            Examples:
              stallwatch top stalls                  which stalls cost most
              stallwatch show stalls                 the newest one in full
              stallwatch top stalls --since 2h --cause lock --min 500ms
              stallwatch diff before after --fail-on new,worse
              stallwatch tail stalls                 stalls as they happen

            Exit status: 0 for success, 1 when `diff --fail-on` has found what it looks for, and those of sysexits.h: 64 wrong \
            usage, 65 faulty reports, 66 no reports, 71 refused by the system, 73 a file cannot be made, 74 one cannot be \
            read or written, 77 no permission.

            Completions for a shell: stallwatch --generate-completion-script bash (or zsh, or fish).
            """,
        version: StallWatchVersion.current,
        subcommands: [
            ShowCommand.self, TopCommand.self, TreeCommand.self, DiffCommand.self, StatsCommand.self,
            ValidateCommand.self, TailCommand.self, SymbolicateCommand.self, ExportCommand.self, HTMLCommand.self,
        ]
    )
}

@main
enum Program {
    static func main() {
        // A reader that goes away (`| head`) is an error of write(2), which is handled, and not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        Interruption.prepare()
        do {
            var command = try StallWatchCommand.parseAsRoot()
            try command.run()
        } catch let failure as CommandFailure {
            StandardError.write("Error: \(failure.sentence)\n")
            exit(failure.status.rawValue)
        } catch is ReaderGone {
            exit(EXIT_SUCCESS)
        } catch {
            StallWatchCommand.exit(withError: error)
        }
    }
}
