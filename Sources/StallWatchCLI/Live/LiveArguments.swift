import ArgumentParser

/// The arguments of commands that ask a live process.
struct LiveArguments: ParsableArguments {
    @Argument(help: ArgumentHelp("The id of a process with a monitor.", valueName: "pid"))
    var pid: Int32

    @OptionGroup var terminalOptions: TerminalOptions

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws { try Self.check(pid) }

    /// Throws a ValidationError for a number that is no process's.
    static func check(_ pid: Int32) throws {
        if pid < 1 { throw ValidationError("\(pid) is not the id of a process: give a number from 1 on.") }
    }
}
