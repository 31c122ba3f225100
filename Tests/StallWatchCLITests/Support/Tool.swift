import Foundation
import TestSupport
import Testing

enum Tool {
    static func run(
        _ arguments: [String], input: String = "", in directory: TemporaryDirectory? = nil,
        environment: [String: String] = [:]
    ) throws -> Command.Output {
        // The directory is removed after its last use.
        defer { withExtendedLifetime(directory) {} }
        var command = try command(arguments, environment: environment)
        command.directory = directory?.path
        command.input = input
        return try command.run()
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

/// A file in `Texts` with the expected texts of several tests, each after a line `=== NAME`.
///
/// With the variable STALLWATCH_WRITE_TEXTS, texts are written instead of compared, and the tests fail; run them with
/// `--no-parallel` then.
struct ExpectedTexts {
    static let screens = ExpectedTexts(file: "screens.txt")

    let file: String
    private var url: URL { Repository.root.appendingPathComponent("Tests/StallWatchCLITests/Texts/\(file)") }

    func expect(_ text: String, _ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let heading = "\n=== \(name)\n"
        // The line breaks around all texts make the first and the last one like the others.
        let all = "\n" + (try String(contentsOf: url, encoding: .utf8)) + "=== "
        guard getenv("STALLWATCH_WRITE_TEXTS") == nil else {
            try write(text, heading, in: all)
            Issue.record("written", sourceLocation: sourceLocation)
            return
        }
        let start = try #require(all.range(of: heading), "\(file) has no \(name)", sourceLocation: sourceLocation)
        let rest = all[start.upperBound...]
        let end = try #require(rest.range(of: "\n=== "))
        #expect(text == rest[..<end.lowerBound] + "\n", sourceLocation: sourceLocation)
    }

    private func write(_ text: String, _ heading: String, in all: String) throws {
        var texts = all.components(separatedBy: "\n=== ").dropFirst().dropLast().map { "\n=== \($0)\n" }
        texts.removeAll { $0.hasPrefix(heading) }
        texts.append(heading + text)
        let written = texts.sorted().map { $0.dropFirst() }.joined()
        try written.write(to: url, atomically: true, encoding: .utf8)
    }
}

extension TemporaryDirectory {
    func write(_ reports: [ReportFixture], in folder: String = "") throws {
        for report in reports { try write(folder + report.fileName, report.bytes) }
    }
}
