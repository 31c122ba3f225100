import ArgumentParser
import StallReports
import TextOutput

/// Samples the loops of a live process.
struct ProfileCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profile",
        abstract: "Sample the loops of a live process: where their time goes.",
        discussion: """
            The process's configuration has to set control = .socket(directory:). Its monitor looks at the threads of the loops \
            50 times a second: it reads those that wait, and stops those that run for some microseconds, at most 0.5 % of the \
            time. No call of the process returns early. The tool has to run as the process's user or as root.

            A thread is [running] on a CPU or ready to, [blocked] within a turn of its loop, or [idle] between two turns.

            Formats:
              text         a tree for each loop (default)
              pprof        for pprof: labels have process, loop and state
              firefox      for profiler.firefox.com: a thread for each loop
              speedscope   for speedscope.app: a profile for each loop
              html         a page with a flame graph for each loop
              collapsed    for flamegraph.pl, inferno, gprof2dot: a line per stack
              perf         for readers of perf script's output
              json         the trees as lists

            Examples:
              stallwatch profile $(pidof notes)
              stallwatch profile 4700 --seconds 30 --bottom-up --minimum 2
              stallwatch profile 4700 --format pprof -o notes.pb.gz
            """
    )

    @Argument(help: ArgumentHelp("The id of a process with a monitor.", valueName: "pid"))
    var pid: Int32

    @Option(help: ArgumentHelp("How long to sample: 1 to 300 seconds.", valueName: "seconds"))
    var seconds = 10

    @Option(help: ArgumentHelp("How often: 1 to 100 times a second.", valueName: "rate"))
    var hertz = ProfilePlan.standardHertz

    @Option(
        help: ArgumentHelp(
            "text, pprof, firefox, speedscope, html, collapsed, perf or json.", valueName: "format"))
    var format = ProfileFormat.text

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file to write, or - for standard output (default).", valueName: "file"))
    var output = "-"

    @Flag(exclusivity: .exclusive)
    var direction = CallTree.Direction.topDown

    @Option(help: ArgumentHelp("Leave out functions with less than this share of a loop's time.", valueName: "percent"))
    var minimum = 1.0

    @Flag(help: "Show runtime frames too: thunks, and the run loop's own functions.")
    var allFrames = false

    @OptionGroup var terminalOptions: TerminalOptions

    func validate() throws {
        try LiveArguments.check(pid)
        guard ProfilePlan.seconds.contains(seconds) else {
            throw ValidationError("--seconds is \(seconds), but has to be between 1 and 300.")
        }
        guard ProfilePlan.hertz.contains(hertz) else {
            throw ValidationError("--hertz is \(hertz), but has to be between 1 and 100.")
        }
        guard (0...100).contains(minimum) else {
            throw ValidationError("--minimum is \(minimum), but has to be between 0 and 100 percent.")
        }
    }

    func run() throws {
        let destination = try Destination(output, isBinary: format.isBinary)
        // In range: validate() has checked both.
        guard let plan = ProfilePlan(seconds: seconds, hertz: hertz) else { return }
        let bar = ProgressBar("Sampling process \(pid) for \(counted(seconds, "second", "seconds"))", total: 0)
        bar.show()
        defer { bar.clear() }
        let answer = try ControlClient(pid: pid).ask(.profile(plan))
        bar.clear()
        guard let profile = answer.profile else {
            throw CommandFailure(.tryAgain, "The monitor in process \(pid) gave no answer: try again.")
        }
        guard !profile.threads.isEmpty else {
            throw CommandFailure(.noInput, "The monitor in process \(pid) watches no loop.")
        }
        var terminal = terminalOptions.terminal
        if case .file = destination { terminal = Terminal() }
        let trees = ProfileTrees(
            profile, direction, leavesOutRuntimeFrames: !allFrames, minimumPercent: minimum)
        switch format {
        case .text: try destination.write(Array(trees.text(for: terminal).utf8))
        case .json: try destination.write(JSONOutput.bytes(ProfileReport(trees)))
        case .html: try destination.write(Array(ProfilePage.html(trees).utf8))
        default: try destination.write(format.data(profile))
        }
    }
}

extension ProfileFormat: ExpressibleByArgument {}
