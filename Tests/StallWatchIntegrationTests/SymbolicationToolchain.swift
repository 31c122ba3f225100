import Foundation
import TestSupport

/// The Swift toolchain's own tools, and what it makes for these tests.
enum SymbolicationToolchain {
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

    /// Runs a tool to its end, and returns what it prints.
    @discardableResult
    static func run(_ tool: String, _ arguments: [String], input: String = "") throws -> String {
        let program = tool.hasPrefix("/") ? tool : "\(directory ?? "")/\(tool)"
        return try Command(program: program, arguments: arguments, directory: scratch, input: input).succeed()
    }
}
