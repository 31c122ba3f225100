import ArgumentParser
import Glibc
import StallReports
import TextOutput

@main
enum Program {
    /// The treatment of signals that the tool has inherited.
    static let signals = InheritedSignals()

    static func main() {
        _ = signals
        // A reader that goes away (`| head`) is an error of write(2), which is handled, and not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        Interruption.prepare()
        do {
            var command = try StallWatchCommand.parseAsRoot()
            try command.run()
        } catch let failure as CommandFailure {
            StandardError.write("Error: \(failure.sentence.printable)\n")
            exit(failure.status.rawValue)
        } catch is ClosedOutput {
            exit(EXIT_SUCCESS)
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
            standard input. A report that is given twice counts once.

            Examples:
              stallwatch top stalls                  which stalls cost most
              stallwatch show stalls                 the newest one in full
              stallwatch top stalls --since 2h --cause lock --min 500ms
              stallwatch diff before after --fail-on new,worse
              stallwatch tail stalls                 stalls as they happen
              stallwatch ship stalls --otlp http://127.0.0.1:4318
              stallwatch baseline update reports     known stalls, which tests excuse until a day
              stallwatch run -- gedit notes.txt      report the stalls of a program that you do not build
              stallwatch test -- swift test          run tests, and say what hangs
              stallwatch stacks 4700                 all threads of a live process
              stallwatch profile 4700                where its loops spend their time
              stallwatch watch 4700                  its loops and stalls on a live screen
              stallwatch doctor                      what works here, and what to set
              stallwatch health /run/notes/health    whether a process makes progress, for probes

            Exit status: 0 for success, 1 when `diff --fail-on` finds a listed change or `health` a stuck loop, 2 when `health` \
            cannot tell, and those of sysexits.h: 64 wrong \
            usage, 65 faulty reports, 66 no reports or no such process, 71 refused by the system, 73 a file cannot be created, 74 a file cannot \
            be read or written, 75 the collector of `ship` does not answer, 77 no permission.

            Completions for a shell: stallwatch --generate-completion-script bash (or zsh, or fish).
            """,
        version: StallWatchVersion.current,
        subcommands: [
            ShowCommand.self, TopCommand.self, TreeCommand.self, DiffCommand.self, StatsCommand.self,
            ValidateCommand.self, TailCommand.self, SymbolicateCommand.self, ExportCommand.self, HTMLCommand.self,
            BaselineCommand.self, TestCommand.self, RunCommand.self, DoctorCommand.self, ShipCommand.self,
            HealthCommand.self, PsCommand.self, StateCommand.self, StacksCommand.self, ProfileCommand.self,
            WatchCommand.self,
        ]
    )
}

/// The treatment of signals that this process was started with, for a program that takes its place.
struct InheritedSignals {
    private let mask: sigset_t
    private let pipe: sigaction

    /// Reads them, so call it before this process changes any.
    init() {
        var mask = sigset_t()
        sigemptyset(&mask)
        pthread_sigmask(SIG_BLOCK, nil, &mask)
        var pipe = sigaction()
        sigaction(SIGPIPE, nil, &pipe)
        self.mask = mask
        self.pipe = pipe
    }

    /// Restores them on the calling thread, right before execve(2), which resets all handlers by itself.
    func restore() {
        var (mask, pipe) = (mask, pipe)
        sigaction(SIGPIPE, &pipe, nil)
        pthread_sigmask(SIG_SETMASK, &mask, nil)
    }
}
