import ArgumentParser
import Glibc

/// Runs a program with a monitor, without building it.
struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run a program that you do not build, and report its stalls.",
        discussion: """
            The program needs no change. The tool checks it, preloads a small library (LD_PRELOAD) and becomes the program: \
            the process id, input, output, signals, terminal and exit status are the program's own. The library watches the \
            main run loop of Foundation, the main queue (dispatchMain, an async @main), and the main context of GLib and GTK, \
            also if Python or another program loads GLib later. If there was a stall, one line on standard error says so when \
            the program exits.

            Child processes are not watched, and do not see the library, unless --children is given: give it for a script that \
            starts the program. The variables STALLWATCH_THRESHOLD, STALLWATCH_OUTPUT, STALLWATCH_LOOP, STALLWATCH_CHILDREN=1 \
            and STALLWATCH_QUIET=1 do the same as the options, which come first.

            Exit status: the program's. 127 if it is not found; 126 if it cannot be executed, or cannot be watched because it \
            is linked statically, changes its user (set-user-ID), is built for another C library or architecture, or contains \
            the Swift runtime; 64, 66, 73 or 77 for wrong options, missing libraries or an unwritable directory.

            Examples:
              stallwatch run -- gedit notes.txt
              stallwatch run --threshold 100ms --output /tmp/stalls -- python3 app.py
              stallwatch run --loop glib --children -- ./start.sh
            """
    )

    @Option(
        help: ArgumentHelp(
            "The duration from which a turn is a stall: 5ms to 24h. Default: 250ms.", valueName: "duration"),
        transform: DurationArgument.init(parsing:))
    var threshold: DurationArgument?

    @Option(help: ArgumentHelp("The directory for the reports. Default: stalls.", valueName: "path"))
    var output: String?

    @Option(
        help: ArgumentHelp("The loop to watch: auto, run-loop, main-queue or glib. Default: auto.", valueName: "loop"))
    var loop: LoopChoice?

    @Flag(help: "Watch child processes, too.")
    var children = false

    @Flag(help: "Print nothing about stalls.")
    var quiet = false

    @Argument(
        parsing: .postTerminator, help: ArgumentHelp("The program and its arguments, after --.", valueName: "program")
    )
    var program: [String] = []

    func validate() throws {
        if program.isEmpty {
            throw ValidationError("There is no program. Give it after --, such as -- gedit notes.txt.")
        }
        _ = try settings()
    }

    func run() throws {
        let settings = try settings()
        let output = try ReportOutput(settings.output)
        let variables = try PreloadedLibraries.environment(running: settings, output: output)
        try output.checkWritable()
        do throws(StartFailure) {
            let search = ProgramSearch(path: getenv("PATH").map { String(cString: $0) })
            let runnable = try RunnableProgram(program[0], search: search)
            var environment = ProcessEnvironment.current()
            for variable in RunSettings.Variable.allCases { environment.remove(variable.rawValue) }
            for (name, value) in variables { environment.set(name, value) }
            let replacement = Replacement(
                path: runnable.path, argumentCount: program.count, environment: environment, signals: Program.signals)
            throw replacement.begin()
        } catch {
            throw error.exit
        }
    }

    private func settings() throws -> RunSettings {
        let options = RunSettings.Options(
            threshold: threshold, output: output, loop: loop, children: children, quiet: quiet)
        return try RunSettings(options) { variable in getenv(variable.rawValue).map { String(cString: $0) } }
    }
}
