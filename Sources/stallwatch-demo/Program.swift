import ArgumentParser
import Glibc
import LinuxSupport
import StallWatch

/// The entry point.
///
/// It is async because one of the demo's children has to be a program with an async `@main`.
///
/// The demo itself never suspends here. It runs the main run loop on the main thread, like a program with a synchronous `main`.
@main
enum Program {
    @MainActor static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        // Not a subcommand: the demo's own --seed and --output would take those of `generate`.
        if arguments.first == "generate" { return GenerateCommand.main(Array(arguments.dropFirst())) }
        guard let command = try? DemoCommand.parse(), let shape = command.host else { return DemoCommand.main() }
        do {
            let program = try HostProgram(
                shape, threshold: command.threshold.duration, stall: .milliseconds(command.hostStall),
                directory: command.output
            )
            switch shape {
            case .asyncMain, .asyncMainAtOnce: await program.run()
            default: program.runLoop()
            }
        } catch {
            DemoCommand.exit(withError: error)
        }
    }
}

/// The demo's error messages.
enum StandardError {
    /// Writes the text at once.
    ///
    /// Ignores a failure, because there is nowhere to report it.
    static func write(_ text: String) {
        _ = writeAll(Array(text.utf8), to: STDERR_FILENO)
    }
}

/// The demo's output.
enum StandardOutput {
    /// Writes the text at once, to a terminal and to a pipe.
    static func write(_ text: String) throws(DemoFailure) {
        guard writeAll(Array(text.utf8), to: STDOUT_FILENO) == nil else {
            throw DemoFailure(.inputOutput, "standard output cannot be written: keep its reader running")
        }
    }
}

/// The reason for which the demo cannot continue: a sentence that says what to do, and the exit status.
struct DemoFailure: Error, Equatable {
    /// The exit statuses for failures of the system, with the meanings of sysexits.h.
    enum Status: Int32 {
        /// EX_OSERR: the system refused something, such as a thread.
        case systemError = 71
        /// EX_CANTCREAT: a file or directory cannot be made.
        case cannotCreate = 73
        /// EX_IOERR: a file cannot be written or read.
        case inputOutput = 74
    }

    let status: Status
    let sentence: String

    init(_ status: Status, _ sentence: String) {
        self.status = status
        self.sentence = sentence
    }

    /// A failure to make or write a file.
    init(_ sentence: String, errno: Int32) {
        self.init(Status(ofFileError: errno), "\(sentence): \(String(cString: strerror(errno)))")
    }

    /// A failure of the monitor.
    init(_ error: StallWatchError) {
        guard error.code == .unwritableReports else {
            self.init(.systemError, error.description)
            return
        }
        self.init(error.errno.map(Status.init(ofFileError:)) ?? .cannotCreate, error.description)
    }
}

extension DemoFailure.Status {
    /// A full or broken disk is an input/output error.
    ///
    /// Every other error concerns the path.
    init(ofFileError error: Int32) {
        switch error {
        case ENOSPC, EDQUOT, EFBIG, EIO: self = .inputOutput
        default: self = .cannotCreate
        }
    }
}

extension Duration {
    /// The duration in milliseconds, with its fraction.
    var milliseconds: Double { self / .milliseconds(1) }

    /// The duration in seconds, with its fraction.
    var seconds: Double { self / .seconds(1) }
}
