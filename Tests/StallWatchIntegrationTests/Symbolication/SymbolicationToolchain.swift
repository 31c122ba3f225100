import Foundation
import TestSupport
import Testing

/// The Swift toolchain's tools and the files that they build for these tests.
enum SymbolicationToolchain {
    /// The directory of the first `swiftc` in the search path.
    static let directory: String? = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":")
        .map { "\($0)/swiftc" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
        .flatMap { realpath($0, nil) }
        .map { path in
            defer { free(path) }
            return URL(fileURLWithPath: String(cString: path)).deletingLastPathComponent().path
        }

    /// Whether all tools are installed.
    static let isComplete = ["swiftc", "clang", "llvm-symbolizer", "llvm-objcopy"].allSatisfy { tool in
        directory.map { FileManager.default.isExecutableFile(atPath: "\($0)/\(tool)") } ?? false
    }

    /// The directory for this run's files, removed when the process ends; the pid in its name separates runs.
    static let scratch: String = {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("stallwatch-symbols-\(getpid())").path
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        atexit { try? FileManager.default.removeItem(atPath: SymbolicationToolchain.scratch) }
        return path
    }()

    /// Runs a tool to its end and returns its output.
    @discardableResult
    static func run(_ tool: String, _ arguments: [String], input: String = "") throws -> String {
        let program = tool.hasPrefix("/") ? tool : "\(directory ?? "")/\(tool)"
        return try Command(program: program, arguments: arguments, directory: scratch, input: input).succeed()
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a suite on a machine without the Swift toolchain's tools.
    static var needsToolchain: Self {
        .enabled(if: SymbolicationToolchain.isComplete, "the toolchain has no clang, llvm-symbolizer or llvm-objcopy")
    }
}
