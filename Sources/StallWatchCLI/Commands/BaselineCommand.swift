import ArgumentParser

/// Works on baselines: the known stalls that tests excuse until a day.
struct BaselineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "baseline",
        abstract: "Maintain a file of known stalls, which tests excuse until a day.",
        subcommands: [BaselineUpdateCommand.self]
    )
}
