import Foundation

/// The built tool, run as a process of its own.
struct Tool {
    /// What a run of it came to.
    struct Result {
        /// The exit status; the number of a signal, negative, if one ended it.
        var status: Int32
        var output: String
        var errors: String
    }

    /// The tool lies beside the tests' own executable.
    static let path: String = {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("stallwatch").path
    }()

    /// Runs it to its end.
    ///
    /// Standard output and error go to files: there is no pipe that could fill up.
    static func run(
        _ arguments: [String], input: String? = nil, in directory: Scratch? = nil, environment: [String: String] = [:]
    ) throws -> Result {
        // It goes away with its last use.
        defer { withExtendedLifetime(directory) {} }
        let scratch = try Scratch()
        defer { withExtendedLifetime(scratch) {} }
        let process = process(arguments, in: directory?.path, environment: environment)
        if let input {
            process.standardInput = try FileHandle(forReadingFrom: URL(fileURLWithPath: scratch.write("input", input)))
        }
        let output = try FileHandle(forWritingTo: URL(fileURLWithPath: scratch.write("output", "")))
        let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: scratch.write("errors", "")))
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        process.waitUntilExit()
        return Result(
            status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
            output: try String(contentsOfFile: scratch.path + "/output", encoding: .utf8),
            errors: try String(contentsOfFile: scratch.path + "/errors", encoding: .utf8)
        )
    }

    /// The process, not started, with nothing on its standard input.
    static func process(
        _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:]
    ) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        // The width of help texts follows COLUMNS.
        process.environment = ProcessInfo.processInfo.environment
            .filter { !["COLUMNS", "TERM", "NO_COLOR", "DEBUGINFOD_URLS"].contains($0.key) }
            .merging(environment) { $1 }
        if let directory { process.currentDirectoryURL = URL(fileURLWithPath: directory) }
        process.standardInput = FileHandle.nullDevice
        return process
    }
}

/// The repository's folder.
let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
