import Foundation
import TestSupport

/// The built tool, run as a process of its own.
enum Tool {
    /// What a run of it came to.
    struct Result {
        /// The exit status; the number of a signal, negative, if one ended it.
        var status: Int32
        var output: String
        var errors: String
    }

    /// Runs it to its end.
    static func run(
        _ arguments: [String], input: String = "", in directory: TemporaryDirectory? = nil,
        environment: [String: String] = [:]
    ) throws -> Result {
        // It goes away with its last use.
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

    /// The tool with these arguments, where nothing but `environment` changes what it prints.
    static func command(_ arguments: [String], environment: [String: String] = [:]) throws -> Command {
        // The width of help texts follows COLUMNS.
        let taken: [String: String?] = ["COLUMNS": nil, "TERM": nil, "NO_COLOR": nil, "DEBUGINFOD_URLS": nil]
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
