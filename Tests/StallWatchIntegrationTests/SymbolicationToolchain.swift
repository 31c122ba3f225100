import Foundation

/// The Swift toolchain's own tools, and what it makes for these tests.
enum SymbolicationToolchain {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// The directory of the `swiftc` that is found first.
    static let directory: String? = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":")
        .map { "\($0)/swiftc" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
        .flatMap { realpath($0, nil) }
        .map { path in
            defer { free(path) }
            return URL(fileURLWithPath: String(cString: path)).deletingLastPathComponent().path
        }

    /// Whether all the tools are there.
    static let isComplete = ["swiftc", "clang", "llvm-symbolizer", "llvm-objcopy"].allSatisfy { tool in
        directory.map { FileManager.default.isExecutableFile(atPath: "\($0)/\(tool)") } ?? false
    }

    /// Where this run's files are, until the process ends; the name is the process's, so that runs do not meet.
    static let scratch: String = {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("stallwatch-symbols-\(getpid())").path
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        atexit { try? FileManager.default.removeItem(atPath: SymbolicationToolchain.scratch) }
        return path
    }()

    /// Runs a tool to its end.
    @discardableResult
    static func run(_ tool: String, _ arguments: [String], input: String? = nil) throws -> Data {
        let process = Process()
        process.executableURL = URL(
            fileURLWithPath: tool.hasPrefix("/") ? tool : "\(directory ?? "")/\(tool)"
        )
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: scratch)
        // Files, not pipes: a pipe that is full would stop a tool that still has input to read.
        let name = "\(scratch)/run-\(UUID().uuidString)"
        defer {
            for suffix in ["in", "out", "err"] { try? FileManager.default.removeItem(atPath: "\(name).\(suffix)") }
        }
        try Data((input ?? "").utf8).write(to: URL(fileURLWithPath: "\(name).in"))
        for suffix in ["out", "err"] { _ = FileManager.default.createFile(atPath: "\(name).\(suffix)", contents: nil) }
        process.standardInput = FileHandle(forReadingAtPath: "\(name).in")
        process.standardOutput = FileHandle(forWritingAtPath: "\(name).out")
        process.standardError = FileHandle(forWritingAtPath: "\(name).err")
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let message = (try? String(contentsOfFile: "\(name).err", encoding: .utf8)) ?? ""
            throw Failure(description: "\(tool) \(arguments.joined(separator: " ")): \(message)")
        }
        return try Data(contentsOf: URL(fileURLWithPath: "\(name).out"))
    }
}
