import Foundation

/// A program that a test runs.
struct Command {
    let program: String
    var arguments: [String] = []
    /// On top of the test's own.
    var environment: [String: String] = [:]

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    struct Output {
        var reason: Process.TerminationReason
        /// The exit status, or the number of the signal that ended it.
        var status: Int32
        var text: String
    }

    /// A program found on PATH; `nil` if it is not there.
    static func find(_ name: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
            .map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// A product of this package, which is built into the directory of the test's own executable.
    static func product(_ name: String) throws -> String {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(name).path
    }

    /// Runs it to its end.
    ///
    /// Standard output and error go to one file: there is no pipe that could fill up.
    func run() throws -> Output {
        let path = NSTemporaryDirectory() + "stallwatch-\(UUID().uuidString).txt"
        guard FileManager.default.createFile(atPath: path, contents: nil),
            let file = FileHandle(forWritingAtPath: path)
        else { throw Failure(description: "\(path) cannot be made") }
        defer { try? FileManager.default.removeItem(atPath: path) }
        let process = process()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = file
        process.standardError = file
        try process.run()
        process.waitUntilExit()
        try file.close()
        let text = String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
        return Output(reason: process.terminationReason, status: process.terminationStatus, text: text)
    }

    /// Runs it to its end, and throws what it printed when its exit status is not 0.
    @discardableResult
    func succeed() throws -> String {
        let output = try run()
        guard output.reason == .exit, output.status == 0 else {
            throw Failure(description: "\(program) \(arguments): status \(output.status)\n\(output.text)")
        }
        return output.text
    }

    /// The process, not started.
    func process() -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        return process
    }
}
