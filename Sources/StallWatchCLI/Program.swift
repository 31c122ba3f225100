import ArgumentParser
import Glibc

@main
enum Program {
    /// How the tool was told to treat signals.
    static let signals = InheritedSignals()

    static func main() {
        _ = signals
        // A reader that goes away (`| head`) is an error of write(2), which is handled, and not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        Interruption.prepare()
        do {
            var command = try StallWatchCommand.parseAsRoot()
            try command.run()
        } catch let failure as CommandFailure {
            StandardError.write("Error: \(failure.sentence)\n")
            exit(failure.status.rawValue)
        } catch is ReaderGone {
            exit(EXIT_SUCCESS)
        } catch {
            StallWatchCommand.exit(withError: error)
        }
    }
}
