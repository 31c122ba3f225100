import ArgumentParser
import Glibc
import LinuxSupport
import StallWatch

/// The entry point, async because one of the program's children has to be a program with an async `@main`.
///
/// The program itself never suspends here. It runs the main run loop on the main thread, like a program with a synchronous `main`.
@main
enum Program {
    @MainActor static func main() async {
        // A reader that ends is an error of the write, which says so.
        signal(SIGPIPE, SIG_IGN)
        let arguments = CommandLine.arguments.dropFirst()
        // Not subcommands: the program's own --seed and --output would take those of `generate`.
        if arguments.first == "generate" { return GenerateCommand.main(Array(arguments.dropFirst())) }
        if arguments.first == "mix" { return MixCommand.main(Array(arguments.dropFirst())) }
        if arguments.first == "order" { return OrderCommand.main(Array(arguments.dropFirst())) }
        guard let command = try? ScenariosCommand.parse(), let shape = command.host else {
            return ScenariosCommand.main()
        }
        do {
            let program = try HostProgram(
                shape, threshold: command.threshold.duration, stall: .milliseconds(command.hostStall),
                directory: command.output
            )
            switch shape {
            case .asyncMain, .asyncMainAtOnce, .asyncMainTimer, .asyncMainQueueTimer: await program.run()
            default: program.runLoop()
            }
        } catch {
            ScenariosCommand.exit(withError: error)
        }
    }
}
