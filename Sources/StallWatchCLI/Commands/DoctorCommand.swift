import ArgumentParser
import StallReports

/// Says what StallWatch can do here, or in a process.
struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Say what works here, what reports lack, and what to set.",
        discussion: """
            Without a process id, the tool tries what a program that is started like it could do. With one, it prints what \
            the monitor in that process found when it started, and what it found itself in /proc. The process may be in a \
            container that the tool can see into; the tool has to run as its user or as root.

            Every missing feature comes with its loss and with the flags, packages or versions that would give it. Exit \
            status: 66 when there is no such process or no monitor in it, 77 when it is another user's.

            Examples:
              stallwatch doctor $(pidof notes)
              stallwatch doctor
              docker exec notes stallwatch doctor --json
            """
    )

    @Argument(help: ArgumentHelp("The id of a process with a monitor.", valueName: "pid"))
    var pid: Int32?

    @OptionGroup var terminalOptions: TerminalOptions

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        if let pid, pid < 1 { throw ValidationError("\(pid) is not the id of a process: give a number from 1 on.") }
    }

    func run() throws {
        guard let pid else {
            try print(Diagnosis(capabilities: ToolCapabilities.current(), source: .tool))
            return
        }
        let process = try MonitoredProcess(pid: pid)
        try print(Diagnosis(process))
        if !process.isMonitored { throw process.notMonitored }
    }

    private func print(_ diagnosis: Diagnosis) throws {
        if json {
            try StandardOutput.write(JSONOutput.bytes(diagnosis))
        } else {
            try StandardOutput.write(DiagnosisText(diagnosis).text(for: terminalOptions.terminal))
        }
    }
}
