import Foundation
import TestSupport

/// The built tool, which runs in its own process.
enum Tool {
    /// The result of a run.
    struct Result {
        /// The exit status, or the negative number of the signal that ended the tool.
        var status: Int32
        var output: String
        var errors: String
    }

    /// Runs the tool and waits for its end.
    static func run(
        _ arguments: [String], input: String = "", in directory: TemporaryDirectory? = nil,
        environment: [String: String] = [:]
    ) throws -> Result {
        // The directory is removed after its last use.
        defer { withExtendedLifetime(directory) {} }
        var command = try command(arguments, environment: environment)
        command.directory = directory?.path
        command.input = input
        let output = try command.run()
        return Result(
            status: output.reason == .exit ? output.status : -output.status, output: output.output,
            errors: output.errors
        )
    }

    /// Returns the tool with these arguments, in an environment where only `environment` affects the output.
    static func command(_ arguments: [String], environment: [String: String] = [:]) throws -> Command {
        // The width of help texts follows COLUMNS.
        let taken: [String: String?] = [
            "COLUMNS": nil, "LC_ALL": "C.UTF-8", "TERM": nil, "NO_COLOR": nil, "DEBUGINFOD_URLS": nil,
        ]
        return Command(
            program: try Command.product("stallwatch"), arguments: arguments,
            environment: taken.merging(environment) { $1 }
        )
    }
}

extension TemporaryDirectory {
    /// Writes reports' files.
    func write(_ reports: [ReportFixture], in folder: String = "") throws {
        for report in reports { try write(folder + report.fileName, report.bytes) }
    }
}
