import Foundation
import Glibc
import LinuxSupport
import Testing
import TestSupport

@testable import StallReports
@testable import stallwatch_scenarios

/// A short soak that ends by itself, and one that a signal ends.
@Suite(.serialized) struct SoakTests {
    /// Short scenarios of the main loop, a thread's loop, a queue and a probe.
    private static let scenarios = ["usleep", "cpu-spin", "fifo", "run-until-loop", "queue", "probe", "gap-unwatched"]

    private struct Summary: Decodable {
        struct Calls: Decodable {
            var calls, reported, captured, interrupted, early: Int
        }
        struct Act: Decodable {
            var done, failed: Int
        }

        struct Totals: Decodable {
            var seed, rounds, stalls, reported: Int
            var growth: [String: Int]?
            var calls: Calls
            var chaos: [String: Act]
        }

        var problems: [String]
        var totals: Totals

        /// The problems that other programs cannot cause: in a soak this short they may keep most scenarios from being
        /// judged, and a host may stop the clock of some timeouts.
        var ownProblems: [String] {
            problems.filter { problem in
                problem != "no scenario was judged" && !problem.contains(" runs were inconclusive, ")
                    && !problem.hasSuffix(" calls returned early")
            }
        }
    }

    private func soak(_ length: String, rounds: Int = 0, in directory: TemporaryDirectory) throws -> Command {
        Command(
            program: try Command.product("stallwatch-scenarios"),
            arguments: ["--soak", length, "--soak-rounds", "\(rounds)", "--seed", "7"]
                + Self.scenarios.flatMap { ["--scenario", $0] }
                + ["--output", directory.path("reports"), "--summary", directory.path("summary.json")]
        )
    }

    @Test(.timeLimit(.minutes(20))) func aShortSoakPassesAndDoesEverything() throws {
        let directory = try TemporaryDirectory()
        let stolen = CPUSteal()
        let result = try soak("25s", rounds: 2, in: directory).run()
        let lines = result.output.split(separator: "\n")
        #expect(lines.first?.hasSuffix("--seed 7") == true)
        let data = try Data(contentsOf: URL(filePath: directory.path("summary.json")))
        let summary = try JSONDecoder().decode(Summary.self, from: data)
        let totals = summary.totals
        #expect(totals.seed == 7)
        #expect((result.status == 0) == summary.problems.isEmpty, "\(result.text)")
        #expect(lines.last?.hasPrefix(summary.problems.isEmpty ? "soak ok. Seed 7, " : "soak FAILED") == true)
        // Three scenarios of each round are judged on the busiest machine, too.
        #expect(totals.stalls >= 6 && totals.reported == totals.stalls)
        #expect(summary.ownProblems == [], "\(result.text)")
        #expect(totals.rounds >= 2)
        #expect(totals.growth != nil)
        // The clock decides this: the ticks that some timeouts count.
        stolen.excuses { #expect(totals.calls.early == 0) }
        #expect(totals.calls.calls >= 8 && totals.calls.captured > 0)
        #expect(totals.calls.interrupted == 0)
        // No option permits changes of the clock.
        #expect(Set(totals.chaos.keys) == ["fork", "exec", "load", "exception", "allocation", "memory"])
        for (kind, act) in totals.chaos { #expect(act.done > 0 && act.failed == 0, "\(kind)") }
    }

    @Test(.timeLimit(.minutes(20))) func aSignalEndsTheSoakWithTotalsAndAStatus() async throws {
        let directory = try TemporaryDirectory()
        let command = try soak("1h", in: directory)
        let child = try ChildProcess(command.arguments, executable: command.program)
        await child.waitForMonitor(within: .seconds(600))
        try await Task.sleep(for: .seconds(3))
        kill(child.id, SIGINT)
        // `nil`: its exit status is not 0.
        #expect(await child.finish(within: .seconds(300)).answer == nil)
        let data = try Data(contentsOf: URL(filePath: directory.path("summary.json")))
        #expect(try JSONDecoder().decode(Summary.self, from: data).ownProblems == ["a signal ended it early"])
    }
}

/// The examples build as separate packages and work as documented.
@Suite(.serialized) struct ExampleTests {
    private static let examples = Repository.root.appendingPathComponent("Examples")

    private static var hasGLib: Bool {
        guard let program = Command.find("pkg-config") else { return false }
        return (try? Command(program: program, arguments: ["--exists", "glib-2.0"]).run().status) == 0
    }

    @Test(.enabled(if: hasGLib, "the headers of GLib are not installed"))
    func aStallOfAGLibLoopInCIsReported() throws {
        let package = Self.examples.appendingPathComponent("glib-loop").path
        let swift = try #require(Command.find("swift"))
        // In the sample's folder, which has the library already.
        let folder = Repository.root.appendingPathComponent("Tests/Samples/StallsInTests/.build").path
        let build = ["build", "--package-path", package, "--product", "glib-loop", "--scratch-path", folder]
        try Command(program: swift, arguments: build).succeed()
        let products = try Command(program: swift, arguments: build + ["--show-bin-path"]).succeed()
            .trimmingCharacters(in: .whitespacesAndNewlines)

        let directory = try TemporaryDirectory()
        let reports = directory.path("reports")
        let output = try Command(program: "\(products)/glib-loop", arguments: [reports]).succeed()
        func find(_ isWanted: (StallReport) -> Bool) throws -> StallReport? {
            let files = try FileManager.default.contentsOfDirectory(atPath: reports).filter { $0.hasSuffix(".json") }
            return try files.map { try directory.report("reports/\($0)") }.first(where: isWanted)
        }
        // A busy machine may make other turns long. The program ends with this one, and leaves names no time there.
        let unnamed = try #require(try find { $0.durationMilliseconds >= 300 })
        #expect(output.contains(unnamed.summary))
        try Tool.run(["symbolicate", reports, "--in-place"])
        let report = try #require(try find { $0.culprit?.function == "work_for_too_long" })
        #expect(report.loop.kind == .probe)
        #expect(report.state == .ended)
        #expect((300...60_000).contains(report.durationMilliseconds))
    }
}
