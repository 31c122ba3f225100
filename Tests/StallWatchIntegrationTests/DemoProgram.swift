import Foundation
import TestSupport

@testable import stallwatch_demo

/// The demo's executable, which the tests run as a child in its hidden shapes.
enum DemoProgram {
    /// Starts a program of that shape whose reports go to `directory`.
    static func start(_ shape: HostShape, threshold: Duration, directory: String) throws -> ChildProcess {
        try ChildProcess(
            ["--host", shape.rawValue, "--threshold", "\(Int(threshold.milliseconds))ms", "--output", directory],
            executable: Command.product("stallwatch-demo")
        )
    }
}

extension ChildProcess {
    /// Lets the program end by itself, and reads what it says.
    func result() async throws -> HostResult? {
        let ending = await finish(within: .seconds(30))
        return try ending.answer.map { try JSONDecoder().decode(HostResult.self, from: Data($0.utf8)) }
    }

    /// How often the thread of that name has gone to sleep and been woken up (proc(5)).
    func wakeUps(ofThread name: String) -> Int? {
        let directory = "/proc/\(id)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for thread in threads where read("\(directory)/\(thread)/comm") == name + "\n" {
            let line = read("\(directory)/\(thread)/status").split(separator: "\n")
                .first { $0.hasPrefix("voluntary_ctxt_switches:") }
            return line?.split(separator: "\t").last.flatMap { Int($0) }
        }
        return nil
    }

    private func read(_ path: String) -> String {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

/// Runs `body` with the path of an empty directory of its own.
func withDirectory<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    return try await body(directory.path)
}
