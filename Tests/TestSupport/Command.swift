package import Foundation

/// A program that a test runs.
package struct Command {
    package var program: String
    package var arguments: [String]
    /// Changes to the test's own; `nil` takes a variable away.
    package var environment: [String: String?]
    /// Where it runs; `nil` for where the test does.
    package var directory: String?
    /// What it reads from standard input.
    package var input: String
    /// After this many seconds it is killed.
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

    /// Why there is no output.
    package struct Failure: Error, CustomStringConvertible {
        package var description: String

        package init(description: String) {
            self.description = description
        }
    }

    /// What a run came to.
    package struct Output {
        package var reason: Process.TerminationReason
        /// The exit status, or the number of the signal that ended it.
        package var status: Int32
        /// What it wrote to standard output.
        package var output: String
        /// What it wrote to standard error.
        package var errors: String

        /// All that it wrote, errors last.
        package var text: String { output + errors }
    }

    /// A program found on PATH; `nil` if it is not there.
    package static func find(_ name: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
            .map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// A product of this package, which is built into the directory of the test's own executable.
    package static func product(_ name: String) throws -> String {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(name).path
    }

    /// Runs it to its end.
    ///
    /// Standard output and error go to files: there is no pipe that could fill up, or that a child of its own could keep.
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

    /// Runs it to its end, returns its output, and throws what it said when its exit status is not 0.
    @discardableResult
    package func succeed() throws -> String {
        let output = try run()
        guard output.reason == .exit, output.status == 0 else {
            throw Failure(description: "\(program) \(arguments): status \(output.status)\n\(output.text)")
        }
        return output.output
    }

    /// The process, not started.
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
