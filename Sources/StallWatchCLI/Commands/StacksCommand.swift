import ArgumentParser
import StallReports

/// Shows all threads of a live process.
struct StacksCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stacks",
        abstract: "Show the stacks of all threads of a live process, its locks and deadlocks.",
        discussion: """
            The process's configuration has to set control = .socket(directory:). Its monitor captures the threads: it reads \
            those that wait and stops those that run for some microseconds. With --json the tool prints a stall report, \
            which the other commands accept. The tool has to run as the process's user or as root.

            Examples:
              stallwatch stacks $(pidof notes)
              stallwatch stacks 4700 --json > now.json
            """
    )

    @OptionGroup var arguments: LiveArguments

    @Flag(help: "Show runtime frames too: thunks, and the run loop's own functions.")
    var allFrames = false

    func run() throws {
        let answer = try ControlClient(pid: arguments.pid).ask(.stacks)
        guard let report = answer.report else {
            throw CommandFailure(.tryAgain, "The monitor in process \(arguments.pid) gave no answer: try again.")
        }
        if arguments.json { return try StandardOutput.write(report.jsonData()) }
        let view = ReportView(
            report: report, origin: ReportOrigin(path: "process \(arguments.pid)"),
            terminal: arguments.terminalOptions.terminal, showsAllFrames: allFrames, showsThreads: true,
            showsSource: false
        )
        try StandardOutput.write(view.threads)
    }
}
