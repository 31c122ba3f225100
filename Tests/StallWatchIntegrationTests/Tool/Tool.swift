import Foundation
import StallReports
import TestSupport

/// The tool `stallwatch`, and real reports for it.
enum Tool {
    /// Runs the tool and returns what it prints.
    @discardableResult
    static func run(_ arguments: [String]) throws -> String {
        try Command(program: Command.product("stallwatch"), arguments: arguments).succeed()
    }

    /// Runs a shell's command line, in which `$TOOL` is the tool.
    static func shell(_ line: String) throws -> Command.Output {
        let tool = try Command.product("stallwatch")
        return try Command(program: "/bin/bash", arguments: ["-c", line], environment: ["TOOL": tool]).run()
    }

    /// A program of `Tests/Support/Readers`.
    static func reader(_ name: String, _ arguments: [String]) throws -> Command.Output {
        let path = Repository.support.appendingPathComponent("Readers/\(name)").path
        return try Command(program: "/usr/bin/env", arguments: ["python3", path] + arguments).run()
    }

    /// Runs the demo, which stalls real loops and writes the reports to `directory`.
    static func stallDemo(into directory: String) throws {
        let scenarios = ["cpu-spin", "sleep", "lock", "timer", "source0"]
        try Command(
            program: Command.product("stallwatch-demo"),
            arguments: ["--output", directory] + scenarios.flatMap { ["--scenario", $0] }
        ).succeed()
    }

    /// The function in which the scenario `cpu-spin` computes.
    static let spinning = "spinTheCPU(for:)"

    /// The output of `doctor --json`.
    struct Diagnosis: Decodable {
        struct Process: Decodable {
            let isMonitored: Bool
            let reportDirectory: String?
        }
        let source: String
        let capabilities: Capabilities
        let process: Process?
    }

    /// The output of `top --json`.
    struct Top: Decodable {
        let totalMilliseconds: Double
        let reports: Int
    }

    /// The output of `tree --json`.
    struct Tree: Decodable {
        struct Node: Decodable {
            let parent: Int?
            let function: String
            let totalMilliseconds: Double
        }
        let totalMilliseconds: Double
        let nodes: [Node]

        /// The stalled time of all stacks with the function; of nested calls only the outermost counts.
        func milliseconds(of function: String) -> Double {
            nodes.indices.reduce(0) { sum, index in
                var next = nodes[index].parent
                while let node = next, nodes[node].function != function { next = nodes[node].parent }
                return nodes[index].function == function && next == nil ? sum + nodes[index].totalMilliseconds : sum
            }
        }
    }

    static func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }
}
