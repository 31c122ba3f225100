import Foundation
import TestSupport

@testable import ScenarioKit

/// The demo's executable, run as a child in its hidden shapes.
enum DemoProgram {
    /// Starts a program of this shape.
    ///
    /// It writes its reports to `directory`, and its stalls take as long as `stall`.
    static func start(
        _ shape: HostShape, threshold: Duration, directory: String, stall: Duration = .zero
    ) throws -> ChildProcess {
        try ChildProcess(
            [
                "--host", shape.rawValue, "--threshold", "\(Int(threshold.milliseconds))ms", "--output", directory,
                "--host-stall", "\(Int(stall.milliseconds))",
            ],
            executable: Command.product("stallwatch-demo")
        )
    }
}

extension ChildProcess {
    /// Waits for the program's end and reads its result.
    func result() async throws -> HostResult? {
        let ending = await finish(within: .seconds(30))
        return try ending.answer.map { try JSONDecoder().decode(HostResult.self, from: Data($0.utf8)) }
    }

    /// Returns the number of voluntary context switches of the thread with this name (proc(5)).
    func wakeUps(ofThread name: String) -> Int? { wakeUps { $0 == name }.values.first }

    /// Returns the number of voluntary context switches of each thread whose name is wanted, by name and id.
    func wakeUps(_ isWanted: (String) -> Bool) -> [String: Int] {
        let directory = "/proc/\(id)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        var counts: [String: Int] = [:]
        for thread in threads {
            let name = read("\(directory)/\(thread)/comm").trimmingCharacters(in: .newlines)
            guard isWanted(name) else { continue }
            let line = read("\(directory)/\(thread)/status").split(separator: "\n")
                .first { $0.hasPrefix("voluntary_ctxt_switches:") }
            counts["\(name) \(thread)"] = line?.split(separator: "\t").last.flatMap { Int($0) }
        }
        return counts
    }

    private func read(_ path: String) -> String {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

/// Runs `body` with the path of a new, empty directory.
func withDirectory<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    return try await body(directory.path)
}
