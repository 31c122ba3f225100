import ArgumentParser
import LinuxSupport
import StallReports
import TextOutput

/// Lists the processes with a monitor.
struct PsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ps",
        abstract: "List the processes with a monitor, and their loops.",
        discussion: """
            It lists the processes of the tool's user, or all processes for root. Only a process with a control socket shows \
            its loops: its configuration has to set control = .socket(directory:).

            Examples:
              stallwatch ps --json
              stallwatch ps
            """
    )

    @OptionGroup var terminalOptions: TerminalOptions

    @Flag(help: "Print JSON.")
    var json = false

    /// A process with a monitor.
    struct Row: Encodable {
        var pid: Int32
        /// The executable's path; `nil` if unknown.
        var executable: String?
        /// The loops; `nil` if the process does not show them.
        var loops: [ControlAnswer.LoopState]?
        /// Why there are no loops; `nil` if there are.
        var reason: String?
    }

    func run() throws {
        let pids = (directoryEntries("/proc") ?? []).compactMap { Int32($0.name) }.sorted()
        let rows = pids.filter(MonitoredProcess.hasWatchdog).map { pid in
            let executable = readLink("/proc/\(pid)/exe")
            do throws(CommandFailure) {
                let answer = try ControlClient(pid: pid).ask(.state)
                return Row(pid: pid, executable: executable, loops: answer.loops, reason: nil)
            } catch {
                return Row(pid: pid, executable: executable, loops: nil, reason: error.sentence)
            }
        }
        if json { return try StandardOutput.write(JSONOutput.bytes(rows)) }
        guard !rows.isEmpty else { return try StandardOutput.write("No process has a monitor.\n") }
        let terminal = terminalOptions.terminal
        let text = rows.map { row in
            let title = "\(row.pid)  \((row.executable ?? "unknown executable").printable)"
            let loops = row.loops.map { LoopStateText.table($0, for: terminal) } ?? "\(row.reason ?? "")\n"
            return terminal.style(title, .bold) + "\n" + loops
        }
        try StandardOutput.write(text.joined(separator: "\n"))
    }
}
