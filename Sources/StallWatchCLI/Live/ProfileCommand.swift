import ArgumentParser
import StallReports
import TextOutput

struct ProfileCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profile",
        abstract: "Sample the loops of a live process: where their time goes.",
        usage: "stallwatch profile <pid> [<options>]",
        discussion: """
            The process's configuration has to set control = .socket(directory:). Its monitor looks at the threads of the loops \
            50 times a second: it reads those that wait, and stops those that run for some microseconds, at most 0.5 % of the \
            time. No call of the process returns early. The tool has to run as the process's user or as root.

            A thread is [running] on a CPU or ready to, [blocked] within a turn of its loop, or [idle] between two turns.

            Formats:
              text         a tree for each loop (default)
              pprof        for pprof and speedscope.app: labels have process, loop
                           and state
              firefox      for profiler.firefox.com: a thread for each loop
              html         a page with a flame graph for each loop
              collapsed    for speedscope.app, flamegraph.pl, inferno, gprof2dot:
                           a line per stack
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

    @Option(help: ArgumentHelp("text, pprof, firefox, html, collapsed or json.", valueName: "format"))
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
        let client = ControlClient(pid: pid)
        let answer = try client.ask(.profile(plan))
        bar.clear()
        guard let profile = answer.profile else { throw client.noAnswer }
        guard !profile.threads.isEmpty else {
            throw CommandFailure(.nothing, "The monitor in process \(pid) watches no loop.")
        }
        var terminal = terminalOptions.terminal
        if destination.file != nil { terminal = Terminal() }
        let trees = ProfileTrees(profile, direction, leavesOutRuntimeFrames: !allFrames, minimumPercent: minimum)
        switch format {
        case .text: try destination.write(trees.text(for: terminal))
        case .json: try destination.write(JSONOutput.bytes(ProfileReport(trees)))
        case .html: try destination.write(Array(ProfilePage.html(trees).utf8))
        default: try destination.write(format.data(profile))
        }
    }
}

enum ProfileFormat: String, CaseIterable, ExpressibleByArgument {
    case text, pprof, firefox, html, collapsed, json

    var isBinary: Bool { exported?.isBinary ?? false }

    /// The format that stalls are exported in, too; `nil` for the others.
    private var exported: ExportFormat? { ExportFormat(rawValue: rawValue) }

    /// The contents of a file that another tool reads; empty for the other formats.
    func data(_ answer: ProfileAnswer) -> [UInt8] {
        var profile = StallProfile(of: .samples)
        for thread in answer.threads { profile.add(profile: thread.report) }
        return exported?.data(profile) ?? []
    }
}

/// The output of `profile --format json`.
struct ProfileReport: Encodable {
    let durationMilliseconds: Double
    let hertz: Int
    let samples: Int
    let missedSamples: Int
    let omittedThreads: Int
    let unkeptStacks: Int
    let process: String
    let pid: Int32
    let threads: [Thread]

    struct Thread: Encodable {
        let loop: String
        let thread: StallReport.ThreadDescription?
        let runningMilliseconds: Double
        let blockedMilliseconds: Double
        let idleMilliseconds: Double
        /// By the kernel's clock.
        let onCPUMilliseconds: Double?
        let runQueueMilliseconds: Double?
        let heldMilliseconds: Double
        let skippedSamples: Int
        let missingStacks: [ProfileTrees.MissingStacks]
        let tree: TreeReport
    }

    init(_ trees: ProfileTrees) {
        let profile = trees.profile
        durationMilliseconds = profile.durationMilliseconds
        hertz = profile.hertz
        samples = profile.passes
        missedSamples = profile.missedPasses
        omittedThreads = profile.omittedThreads
        unkeptStacks = profile.unkeptStacks
        process = profile.threads.first?.report.process.name ?? ""
        pid = profile.threads.first?.report.process.pid ?? 0
        threads = zip(profile.threads, trees.trees).map { thread, tree in
            Thread(
                loop: thread.report.loop.label, thread: thread.report.loop.thread,
                runningMilliseconds: ProfileTrees.milliseconds(.running, of: thread).toMicroseconds,
                blockedMilliseconds: ProfileTrees.milliseconds(.blocked, of: thread).toMicroseconds,
                idleMilliseconds: ProfileTrees.milliseconds(.idle, of: thread).toMicroseconds,
                onCPUMilliseconds: thread.onCPUMilliseconds, runQueueMilliseconds: thread.runQueueMilliseconds,
                heldMilliseconds: thread.heldMilliseconds, skippedSamples: thread.skippedSamples,
                missingStacks: ProfileTrees.missingStacks(thread.report),
                tree: TreeReport(tree, minimumPercent: trees.minimumPercent)
            )
        }
    }
}
