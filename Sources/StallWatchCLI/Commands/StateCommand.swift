import ArgumentParser
import StallReports

/// Shows the loops of a live process.
struct StateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "state",
        abstract: "Show what each loop of a live process is doing.",
        discussion: """
            The process's configuration has to set control = .socket(directory:). The monitor answers also while every loop \
            is stuck. busy is the share of its time that the loop has spent in turns. The tool has to run as the process's \
            user or as root.

            Examples:
              stallwatch state $(pidof notes)
              stallwatch state 4700 --json
            """
    )

    @OptionGroup var arguments: LiveArguments

    func run() throws {
        let answer = try ControlClient(pid: arguments.pid).ask(.state)
        if arguments.json { return try StandardOutput.write(JSONOutput.bytes(answer)) }
        try StandardOutput.write(LoopStateText.table(answer.loops ?? [], for: arguments.terminalOptions.terminal))
    }
}
