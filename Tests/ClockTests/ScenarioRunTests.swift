import Foundation
import StallReports
import Testing
import TestSupport

@testable import ScenarioKit
@testable import stallwatch_scenarios

/// One run of the scenarios: each stall is reported with the right duration, cause and line, and nothing else is reported.
///
/// The program repeats what the clock decides while the host takes its CPUs away (``RetryPolicy``). These tests repeat nothing.
///
/// `STALLWATCH_SCENARIOS=.build/release/stallwatch-scenarios swift test --filter ScenarioRunTests` runs all scenarios of another build.
@Suite(.serialized) struct ScenarioRunTests {
    /// Another build of the scenarios, of which all scenarios run.
    private static let otherDemo = ProcessInfo.processInfo.environment["STALLWATCH_SCENARIOS"]

    /// A stall in each kind of callout, everything that must give no report, and the scenarios that no other test covers:
    /// unobserved runs, the dynamic linker's lock, a thread without a CPU, a pause, another library's loop, changed thresholds.
    static let scenarios =
        otherDemo != nil
        ? Scenario.all.map(\.name)
        : [
            "cpu-spin", "inlined", "sleep", "lock", "pipe-read", "timer", "source0", "main-queue", "perform-block",
            "idle", "healthy-storm", "short", "busy-timers",
            "nested-private-waits", "nested-private-works", "nested-private-stalls", "loader-lock", "under-load",
            "starved", "paused", "main-actor-at-once", "operation-leaked", "operation-actor-blocked",
            "operation-semaphore", "two-monitors", "loop-threshold", "threshold-lowered", "threshold-raised",
        ] + eventLoopScenarios

    #if NIO
        private static let eventLoopScenarios = ["nio-loop-blocked", "nio-loop-busy"]
    #else
        private static let eventLoopScenarios: [String] = []
    #endif

    private static let sources = Result { try ScenarioSources() }
    private static let run = Result { try Run(program: otherDemo ?? Command.product("stallwatch-scenarios")) }

    /// A finished run.
    private struct Run {
        struct Row: Decodable {
            var scenario: String
            var result: ScenarioResult
            var expectsReport: Bool
            var expectedFunction: String?
            var report: String?
        }

        /// Some 5 minutes for all scenarios of a debug build, with room for repetitions.
        static let timeout: TimeInterval = 900

        let output: Command.Output
        let rows: [Row]
        /// The exit status and the messages of the validation of all reports.
        let validation: Command.Output

        init(program: String) throws {
            let directory = try TemporaryDirectory()
            let (reports, summary) = (directory.path("reports"), directory.path("summary.json"))
            output = try Command(
                program: program,
                arguments: ScenarioRunTests.scenarios.flatMap { ["--scenario", $0] }
                    + ["--output", reports, "--summary", summary],
                timeout: Self.timeout
            ).run()
            print(output.output)
            rows = try JSONDecoder().decode([Row].self, from: Data(contentsOf: URL(fileURLWithPath: summary)))
            validation = try Repository.validateReports(reports)
            contents = try rows.reduce(into: [:]) { contents, row in
                guard let report = row.report else { return }
                contents[row.scenario] = try Data(contentsOf: URL(fileURLWithPath: report))
            }
        }

        /// The report of each scenario that has one.
        let contents: [String: Data]
    }

    @Test func theRunPassesWithValidReports() throws {
        let run = try Self.run.get()
        // The limits on results that judge nothing are the program's own (`ScenarioTally`).
        #expect(run.output.status == 0, "\(run.output.text)")
        #expect(run.rows.map(\.scenario) == Self.scenarios)
        #expect(run.validation.status == 0, "\(run.validation.text)")
    }

    @Test(arguments: scenarios) func aScenarioHasTheRightReport(scenario: String) throws {
        let run = try Self.run.get()
        let row = try #require(run.rows.first { $0.scenario == scenario })
        if row.result == .notAvailable || row.result == .inconclusive {
            withKnownIssue { Issue.record("\(scenario) is \(row.result.rawValue)") }
            return
        }
        #expect(row.result == .ok)
        #expect((row.report != nil) == row.expectsReport)
        guard let data = run.contents[scenario] else { return }
        try expectRightLine(in: StallReport(jsonData: Array(data)), row, Self.sources.get())
    }

    /// Expects that the culprit has the file and a line of the function that stalls, inlined or not.
    private func expectRightLine(in report: StallReport, _ row: Run.Row, _ sources: ScenarioSources) throws {
        guard let function = row.expectedFunction else { return }
        let culprit = try #require(report.culprit, "\(row.scenario)")
        #expect(
            sources.contain(function: function, file: culprit.file ?? "", line: culprit.line ?? 0),
            "\(row.scenario): the report puts \(function) at \(culprit.file ?? "?"):\(culprit.line ?? 0)"
        )
    }
}

/// The places of the scenarios's functions in its source files.
struct ScenarioSources {
    private struct Place {
        var file: String
        /// The type, if the function is a method.
        var type: Substring?
        var name: Substring
        var lines: ClosedRange<Int>
    }

    private var places: [Place] = []

    init() throws {
        for path in ["Tests/ScenarioKit"] {
            let directory = Repository.root.appendingPathComponent(path)
            let folder = directory.lastPathComponent
            let names = FileManager.default.enumerator(atPath: directory.path)?.compactMap { $0 as? String } ?? []
            for name in names where [".swift", ".c", ".cpp"].contains(where: { name.hasSuffix($0) }) {
                let file = directory.appendingPathComponent(name)
                read(try String(contentsOf: file, encoding: .utf8), of: "\(folder)/\(name)")
            }
        }
    }

    /// Returns whether a line belongs to a function: `work(for:)`, `Type.work()`, a C function, or the initializer of a global.
    func contain(function: String, file: String, line: Int) -> Bool {
        let parts = function.prefix { $0 != "(" }.split(separator: ".")
        return places.contains { place in
            place.name == parts.last && (parts.count == 1 || place.type == parts[parts.count - 2])
                && file.hasSuffix("/" + place.file) && place.lines.contains(line)
        }
    }

    /// Reads the functions of a file.
    ///
    /// A function begins with its name. It ends in the same line, or with a brace that has the same indentation.
    private mutating func read(_ text: String, of file: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var type: Substring?
        for (index, line) in lines.enumerated() {
            if let found = line.firstMatch(of: /^(?:\w+ )*(?:class|struct|enum|extension|actor) (\w+)/) {
                type = found.1
            }
            let found =
                line.firstMatch(of: /^( *)(?:[@\w()]+ )*func (\w+)/).map { ($0.1, $0.2, "}") }
                ?? line.firstMatch(of: /^( *)static let (\w+): \w+ = {$/).map { ($0.1, $0.2, "}()") }
                ?? line.firstMatch(of: /^()\w[\w ]* \**(\w+)\(/).map { ($0.1, $0.2, "}") }
            guard let (indentation, name, brace) = found,
                let end = line.hasSuffix("}") ? index : lines[index...].firstIndex(of: indentation + brace)
            else { continue }
            places.append(
                Place(file: file, type: indentation.isEmpty ? nil : type, name: name, lines: index + 1...end + 1)
            )
        }
    }
}

/// The scenarios' executable, run as a child in its hidden shapes.
enum ScenariosProgram {
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
            executable: Command.product("stallwatch-scenarios")
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
