import ArgumentParser
import Glibc
import LinuxSupport

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run a program that you do not build, and report its stalls.",
        usage: "stallwatch run [<options>] <program> ...",
        discussion: """
            The program needs no change. The tool checks it, preloads a small library (LD_PRELOAD) and becomes the program: \
            the process id, input, output, signals, terminal and exit status are the program's own. The library watches the \
            main run loop of Foundation, the main queue (dispatchMain, an async @main), and the main context of GLib and GTK, \
            also if Python or another program loads GLib later. If there was a stall, one line on standard error says so when \
            the program exits.

            Child processes are not watched, and do not see the library, unless --children is given: give it for a script that \
            starts the program. The variables STALLWATCH_THRESHOLD, STALLWATCH_REPORTS, STALLWATCH_LOOP, STALLWATCH_CHILDREN=1 \
            and STALLWATCH_QUIET=1 do the same as the options, which come first.

            Exit status: the program's. 127 if it is not found; 126 if it cannot be executed, or cannot be watched because it \
            is linked statically, changes its user (set-user-ID), is built for another C library or architecture, or contains \
            the Swift runtime; before it starts, 2 for wrong options, 1 for missing libraries, 73 or 77 for an unwritable directory.

            Examples:
              stallwatch run gedit notes.txt
              stallwatch run --threshold 100ms --output /tmp/stalls python3 app.py
              stallwatch run --loop glib --children ./start.sh
            """
    )

    @Option(
        help: ArgumentHelp(
            "The duration from which a turn is a stall: 5ms to 24h. Default: 250ms.", valueName: "duration"),
        transform: DurationArgument.init(parsing:))
    var threshold: DurationArgument?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The directory for the reports. Default: stalls.", valueName: "path"))
    var output: String?

    @Option(
        help: ArgumentHelp("The loop to watch: auto, run-loop, main-queue or glib. Default: auto.", valueName: "loop"))
    var loop: LoopChoice?

    @Option(
        help: ArgumentHelp(
            "The number of threads that run Swift's tasks of one priority: 1 to 64.", valueName: "number"))
    var pool: Int?

    @Flag(help: "Watch child processes, too.")
    var children = false

    @Flag(help: "Print nothing about stalls.")
    var quiet = false

    @Argument(
        parsing: .captureForPassthrough,
        help: ArgumentHelp("The program and its arguments, after the options.", valueName: "program"))
    var words: [String] = []

    func validate() throws {
        if try ProgramWords.program(of: words).isEmpty {
            throw ValidationError("There is no program. Give it after the options, such as gedit notes.txt.")
        }
        if let pool, !PoolWidths.all.contains(pool) {
            throw ValidationError("--pool is \(pool): give a number of threads from 1 to 64.")
        }
        _ = try settings()
    }

    func run() throws {
        let (settings, program) = try (settings(), ProgramWords.program(of: words))
        let output = try ReportOutput(settings.output)
        let variables = try PreloadedLibraries.environment(agent: "STALLWATCH_RUN_LIBRARY")
        try output.checkWritable()
        let search = ProgramSearch(path: environmentPath("PATH"))
        let runnable = try RunnableProgram(program[0], search: search)
        var environment = ProcessEnvironment.current()
        for variable in RunSettings.Variable.allCases { environment.remove(variable.rawValue) }
        for (name, value) in variables { environment.set(name, value) }
        environment.remove("STALLWATCH_POOL")
        if let pool { environment.set("STALLWATCH_POOL", "\(pool)") }
        environment.set("STALLWATCH_RUN_OUTPUT", output.path)
        environment.set("STALLWATCH_RUN_SETTINGS", settings.text)
        throw become(runnable.path, arguments: program.count, environment)
    }

    /// Becomes the program, with this process's id, descriptors, terminal and current directory, or returns why not.
    private func become(_ path: String, arguments given: Int, _ environment: ProcessEnvironment) -> CommandFailure {
        // The bytes of this process's own arguments: as Swift strings, those that are not UTF-8 would change.
        let count = Int(CommandLine.argc)
        let first = count - min(given, count)
        var arguments = (first..<count).map { CommandLine.unsafeArgv[$0] } + [nil]
        return environment.withCStrings { entries in
            Program.signals.restore()
            execve(pathBytes(path), &arguments, &entries)
            return CommandFailure(starting: path, errno: errno)
        }
    }

    private func settings() throws -> RunSettings {
        try RunSettings(threshold: threshold, output: output, loop: loop, children: children, quiet: quiet) {
            environmentPath($0.rawValue)
        }
    }
}

enum ProgramWords {
    /// The program that a command runs, with its arguments: `--` before it is not needed.
    ///
    /// - Throws: A `ValidationError` for an option that the command does not have, which would be taken for a program, and a
    ///   request for help where that is asked for.
    static func program(of words: [String]) throws -> [String] {
        guard let first = words.first, first.hasPrefix("-") else { return words }
        if ["-h", "--help"].contains(first) { throw CleanExit.helpRequest() }
        guard first == "--" else { throw ValidationError("Unknown option '\(first)'") }
        return Array(words.dropFirst())
    }
}

enum LoopChoice: String, CaseIterable, ExpressibleByArgument {
    case auto
    case runLoop = "run-loop"
    case mainQueue = "main-queue"
    case glib

    init(parsing text: String) throws {
        guard let choice = LoopChoice(rawValue: text) else {
            throw ValidationError("'\(text)' is no loop: give auto, run-loop, main-queue or glib.")
        }
        self = choice
    }

    /// The sum of the values of `enum cpreload_loop` (CPreload.h).
    var bits: Int32 {
        switch self {
        case .auto: 7
        case .runLoop: 1
        case .mainQueue: 2
        case .glib: 4
        }
    }
}

struct RunSettings: Equatable {
    /// The variables that do the same as the options, and that the program does not receive.
    enum Variable: String, CaseIterable {
        case threshold = "STALLWATCH_THRESHOLD"
        case output = "STALLWATCH_REPORTS"
        case loop = "STALLWATCH_LOOP"
        case children = "STALLWATCH_CHILDREN"
        case quiet = "STALLWATCH_QUIET"
    }

    var threshold = DurationArgument(milliseconds: 250)
    var output = "stalls"
    var loop = LoopChoice.auto
    var children = false
    var quiet = false

    /// The options of the command line, else the variables; throws a `ValidationError` for a wrong value.
    init(
        threshold: DurationArgument? = nil, output: String? = nil, loop: LoopChoice? = nil, children: Bool = false,
        quiet: Bool = false, environment: (Variable) -> String?
    ) throws {
        func value<Value>(_ variable: Variable, _ option: Value?, _ parse: (String) throws -> Value) throws -> Value? {
            if let option { return option }
            guard let text = environment(variable), !text.isEmpty else { return nil }
            do {
                return try parse(text)
            } catch let error as ValidationError {
                throw ValidationError("\(variable.rawValue): \(error.message)")
            }
        }
        self.threshold = try value(.threshold, threshold, DurationArgument.init(parsing:)) ?? self.threshold
        self.output = try value(.output, output) { $0 } ?? self.output
        self.loop = try value(.loop, loop, LoopChoice.init(parsing:)) ?? self.loop
        self.children = try value(.children, children ? true : nil, Self.flag) ?? false
        self.quiet = try value(.quiet, quiet ? true : nil, Self.flag) ?? false
        guard (5...86_400_000).contains(self.threshold.milliseconds) else {
            throw ValidationError("The threshold is \(self.threshold): give a value from 5ms to 24h.")
        }
        if self.output.isEmpty { throw ValidationError("The value '' of --output is empty: name a directory.") }
    }

    private static func flag(_ text: String) throws -> Bool {
        switch text {
        case "1": true
        case "0": false
        default: throw ValidationError("'\(text)' is neither 1 nor 0.")
        }
    }

    /// The value of the variable that the preloaded library reads (CPreload.h).
    var text: String {
        "\(UInt64(threshold.milliseconds * 1_000_000)) \(loop.bits) \(children ? 1 : 0) \(quiet ? 1 : 0)"
    }
}
