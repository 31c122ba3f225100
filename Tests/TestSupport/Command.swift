package import Foundation
import Glibc

package struct Command {
    package var program: String
    package var arguments: [String]
    /// Changes to the environment of the test; `nil` removes a variable.
    package var environment: [String: String?]
    /// The working directory; `nil` for the test's own.
    package var directory: String?
    package var input: String
    /// The time in seconds after which the program is killed.
    package var timeout: TimeInterval

    package init(
        program: String, arguments: [String] = [], environment: [String: String?] = [:], directory: String? = nil,
        input: String = "", timeout: TimeInterval = Process.timeout
    ) {
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.directory = directory
        self.input = input
        self.timeout = timeout
    }

    /// The same program with three descriptors only; a shell keeps the one by which Foundation sees the end.
    package var withThreeDescriptors: Command {
        let closing = "for f in /proc/self/fd/*; do f=${f##*/}; ((f > 2)) && eval \"exec $f>&-\"; done; exec \"$@\""
        var command = self
        command.program = "/bin/bash"
        command.arguments = ["-c", "(\(closing)); exit $?", "bash", program] + arguments
        return command
    }

    package struct Failure: Error, CustomStringConvertible {
        package var description: String

        package init(description: String) {
            self.description = description
        }
    }

    package struct Output {
        package var reason: Process.TerminationReason
        /// The exit status, or the number of the signal that ended the program.
        package var status: Int32
        package var output: String
        package var errors: String

        package var text: String { output + errors }
    }

    /// Returns the path of a program in PATH; `nil` if there is none.
    package static func find(_ name: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
            .map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Returns the path of a product of this package, which is next to the executable of the tests.
    package static func product(_ name: String) throws -> String {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(name).path
    }

    /// Runs the program and waits for its end; standard output and error go to files: a pipe could fill up, or stay
    /// open in a child of the program.
    package func run() throws -> Output {
        let files = try TemporaryDirectory()
        let process = process()
        process.standardInput = try FileHandle(forReadingFrom: URL(fileURLWithPath: files.write("input", input)))
        let paths = try ["output", "errors"].map { try files.write($0, "") }
        process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: paths[0]))
        process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: paths[1]))
        try process.run(atMost: timeout)
        process.waitUntilExit()
        func text(_ path: String) -> String {
            String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
        }
        return Output(
            reason: process.terminationReason, status: process.terminationStatus, output: text(paths[0]),
            errors: text(paths[1])
        )
    }

    /// Runs the program and returns its standard output; throws ``Failure`` with all output if its status is not 0.
    @discardableResult
    package func succeed() throws -> String { try check(run()) }

    /// Returns the standard output of a run; throws ``Failure`` with all output if its status is not 0.
    package func check(_ output: Output) throws -> String {
        guard output.reason == .exit, output.status == 0 else {
            throw Failure(description: "\(program) \(arguments): status \(output.status)\n\(output.text)")
        }
        return output.output
    }

    package func process() -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = environment.reduce(into: ProcessInfo.processInfo.environment) { $0[$1.key] = $1.value }
        if let directory { process.currentDirectoryURL = URL(fileURLWithPath: directory) }
        process.standardInput = FileHandle.nullDevice
        return process
    }
}

extension Process {
    /// The time limit for a program in a test, in seconds; no program needs nearly as long, even on a busy machine.
    package static let timeout: TimeInterval = 600

    /// Starts the program, and kills it if it still runs after `seconds`; so a test that waits for the program, or
    /// reads all of its output, fails instead of hanging.
    package func run(atMost seconds: TimeInterval = timeout) throws {
        let ended = DispatchSemaphore(value: 0)
        terminationHandler = { _ in ended.signal() }
        try run()
        Thread.detachNewThread { [self] in
            if ended.wait(timeout: .now() + seconds) == .timedOut { kill() }
        }
    }

    /// Kills the program, unless it has ended, without waiting for its end; does not use SIGTERM: the program inherits
    /// the signal mask of a dispatch worker, which blocks SIGTERM.
    package func kill() {
        if isRunning { _ = Glibc.kill(processIdentifier, SIGKILL) }
    }
}

package enum Repository {
    package static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The directory of the programs that tests compile or run in addition to the package's targets.
    package static let support = root.appendingPathComponent("Tests/Support")

    /// Runs `Tests/Programs/validate-reports.py` on a directory of reports, where a nonzero status is no error and a field
    /// that is not in the schema is a fault.
    package static func validateReports(_ path: String) throws -> Command.Output {
        let script = root.appendingPathComponent("Tests/Programs/validate-reports.py").path
        return try Command(program: "/usr/bin/env", arguments: ["python3", script, "--strict", path]).run()
    }
}
