import ArgumentParser
import LinuxSupport
import StallReports
import TextOutput

struct PsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ps",
        abstract: "List the processes with a monitor, and their loops.",
        discussion: """
            Only a process of the tool's user shows its loops; to root, one of any user. Its configuration has to set \
            control = .socket(directory:). Of each other process with a monitor, a sentence says why it shows none.

            Examples:
              stallwatch ps --json
              stallwatch ps
            """
    )

    @OptionGroup var output: TextOrJSONOptions

    struct Row: Encodable {
        var pid: Int32
        var executable: String?
        /// The loops; `nil` if the process does not show them.
        var loops: [LoopStatistics]?
        /// Why there are no loops; `nil` if there are.
        var reason: String?
    }

    func run() throws {
        let rows = InspectedProcess.monitored().map { pid, _ in
            var row = Row(pid: pid, executable: readLink("/proc/\(pid)/exe"))
            do throws(CommandFailure) {
                row.loops = try ControlClient(pid: pid).answer(to: .state).loops
            } catch {
                row.reason = error.sentence
            }
            return row
        }
        try ClosedOutput.ignored {
            try output.write(rows) { terminal in
                guard !rows.isEmpty else { return "No process has a monitor.\n" }
                return rows.map { row in
                    let title = "\(row.pid)  \((row.executable ?? "unknown executable").printable)"
                    let loops = row.loops.map { LoopStateText.table($0, for: terminal) } ?? "\(row.reason ?? "")\n"
                    return terminal.style(title, .bold) + "\n" + loops
                }.joined(separator: "\n")
            }
        }
        if rows.isEmpty { throw ExitCode(CommandFailure.Status.nothing.rawValue) }
    }
}

struct StateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "state",
        abstract: "Show what each loop of a live process is doing.",
        discussion: """
            The process's configuration has to set control = .socket(directory:). The monitor answers also while every loop \
            is stuck. busy is the share of its time that the loop has spent in turns. The tool has to run as the process's \
            user or as root.

            Examples:
              stallwatch state notes
              stallwatch state 4700 --json
            """
    )

    @OptionGroup var arguments: LiveArguments

    func run() throws {
        let answer = try ControlClient(pid: arguments.pid()).answer(to: .state)
        try arguments.output.write(answer) { LoopStateText.table(answer.loops ?? [], for: $0) }
    }
}

struct StacksCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stacks",
        abstract: "Show the stacks of all threads of a live process, its locks and deadlocks.",
        discussion: """
            The process's configuration has to set control = .socket(directory:). Its monitor captures the threads: it reads \
            those that wait and stops those that run for some microseconds. With --json the tool prints a stall report, \
            which the other commands accept. The tool has to run as the process's user or as root.

            Examples:
              stallwatch stacks notes
              stallwatch stacks 4700 --json > now.json
            """
    )

    @OptionGroup var arguments: LiveArguments

    @Flag(help: "Show runtime frames too: thunks, and the run loop's own functions.")
    var allFrames = false

    func run() throws {
        let client = ControlClient(pid: try arguments.pid())
        let answer = try client.answer(to: .stacks)
        guard let report = answer.report else { throw client.noAnswer }
        if arguments.output.json { return try StandardOutput.write(PlainJSON.escaped(report.jsonData())) }
        let view = ReportView(
            report: report, origin: ReportOrigin(path: "process \(client.pid)"),
            terminal: arguments.output.terminalOptions.terminal, showsAllFrames: allFrames
        )
        let swiftTasks = answer.tasks.map { tasks($0, of: client.pid) } ?? ""
        try StandardOutput.writeLast(view.threads + view.waitingLoops + swiftTasks)
    }

    private func tasks(_ list: TaskList, of pid: Int32) -> String {
        func number(_ isRight: (TaskList.Task) -> Bool) -> Int {
            list.tasks.filter(isRight).reduce(0) { $0 + ($1.count ?? 1) }
        }
        return "\n\(number { _ in true }) Swift tasks: \(number { $0.state == .running }) running, "
            + "\(number { $0.state == .enqueued }) wait for a turn, \(number { $0.state == .suspended }) suspended; "
            + "see \(Invocation.name) tasks \(pid).\n"
    }
}

struct LiveArguments: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The id or the name of a process with a monitor. Default: the only one.", valueName: "process"))
    var process: String?

    @OptionGroup var output: TextOrJSONOptions

    func validate() throws { try Self.check(process) }

    static func check(_ process: String?) throws {
        guard let pid = process.flatMap({ Int($0) }), Int32(exactly: pid).map({ $0 < 1 }) ?? true else { return }
        throw ValidationError("\(pid) is not the id of a process: give a number from 1 on, or a name.")
    }

    func pid() throws(CommandFailure) -> Int32 { try InspectedProcess.pid(of: process) }
}

enum LoopStateText {
    static func table(_ loops: [LoopStatistics], for terminal: Terminal) -> String {
        guard !loops.isEmpty else { return "It watches no loop.\n" }
        var table = TextTable([
            .init("loop", isFlexible: true, style: .bold), .init("state"), .init("busy", .right),
            .init("stalls", .right), .init("last stall (UTC)", dropped: 1),
        ])
        for loop in loops {
            table.add([
                loop.label.printable, state(of: loop), loop.utilization.map { "\(($0 * 100).fixed(1)) %" } ?? "-",
                "\(loop.stalls)", loop.lastStall.map { "\($0)" } ?? "none",
            ])
        }
        return table.text(for: terminal)
    }

    static func state(of loop: LoopStatistics) -> String {
        guard let turn = loop.currentTurn else { return "waits" }
        return "\(loop.isStalled ? "stalled" : "in a turn") for \(turn.text)"
    }
}
