import Foundation
import StallWatch
import TestSupport
import Testing

@testable import StallWatchCLI

/// Other programs read the output of `stallwatch export`.
@Suite struct ToolExportTests {
    private let directory = TemporaryDirectory.ofTest()

    private static let formats = ["collapsed", "pprof", "firefox"]

    @Test(.needsPython(["google.protobuf", "gprof2dot"])) func otherToolsReadEachFormat() throws {
        let reports = try Tool.scenarios.get() + "/stalls"
        let top = try Tool.decode(Tool.Top.self, Tool.run(["top", reports, "--json"]))
        let tree = try Tool.decode(
            Tool.Tree.self, Tool.run(["tree", reports, "--json", "--all-frames", "--minimum", "0"]))
        #expect(tree.totalMilliseconds == top.totalMilliseconds)
        let spinning = tree.milliseconds(of: Tool.spinning)
        #expect(spinning > 250 && spinning < top.totalMilliseconds)
        for format in Self.formats {
            try Tool.run(["export", reports, "--format", format, "--output", "\(directory.path)/\(format)"])
        }
        let microseconds = [top.totalMilliseconds, spinning].map { Int(($0 * 1_000).rounded()) }
        let read = try Tool.reader(
            "read-profiles.py", [directory.path, String(microseconds[0]), Tool.spinning, String(microseconds[1])]
        )
        #expect(read.status == 0, "\(read.text)")
        #expect(read.text.split(separator: "\n").map(String.init) == Self.formats.map { "\($0): read" })

        // The readers find a wrong file.
        let wrong = try Tool.reader(
            "read-profiles.py", [directory.path, String(microseconds[0] + 1), Tool.spinning, String(microseconds[1])]
        )
        #expect(wrong.status == 1)
        #expect(!wrong.text.contains(": read"), "\(wrong.text)")
    }
}

/// The tool reads the statistics that a monitor writes.
@Suite struct ToolStatisticsTests {
    @Test func statisticsOfAMonitorAreRead() throws {
        let scratch = try TemporaryDirectory()
        let path = scratch.path + "/statistics.json"
        var configuration = StallMonitor.Configuration(outputs: [.directory(scratch.path + "/stalls")])
        configuration.outputs.append(.statistics(path))
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        monitor.stop()
        let sum = try StatisticsSum(of: [path])
        #expect(sum.files == 1)
        #expect(sum.total == monitor.statistics)
    }
}

/// The steps of `action.yml`, as GitHub's runner runs them.
@Suite struct ActionTests {
    private let directory = TemporaryDirectory.ofTest()

    private func run(_ tests: String, _ inputs: [String] = []) throws -> Command.Output {
        let program = Repository.root.appendingPathComponent("Tests/Programs/run-action.py").path
        let action = Repository.root.appendingPathComponent("action.yml").path
        let tool = URL(fileURLWithPath: try Command.product("stallwatch")).deletingLastPathComponent().path
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        // In CI the runner's own are set.
        let others = ["ACTION_PATH", "PATH", "SERVER_URL", "REPOSITORY", "SHA"].map { ("GITHUB_" + $0, String?.none) }
        let own = [
            "PATH": tool + ":" + path, "GITHUB_WORKSPACE": directory.path, "RUNNER_TEMP": nil,
            "GITHUB_STEP_SUMMARY": directory.path("summary.md"),
        ]
        return try Command(
            program: "/usr/bin/env", arguments: ["python3", program, action, "tests=" + tests] + inputs,
            environment: own.merging(others) { own, _ in own }, directory: directory.path
        ).run()
    }

    @Test func `a failed test's stall is shown at its line, and is on the page`() throws {
        try DetailedReport.write(to: directory.path, loops: 0)
        let output = try run("cp reports.ndjson \"$STALLWATCH_REPORTS\"; exit 3")
        #expect(output.status == 1)
        let line = "::warning file=Sources/Notes App/Wallet.swift,line=3,title=1 min 0 s in pay() "
        #expect(output.text.contains("status 3\n== Show each stall at its line\n" + line), "\(output.text)")
        #expect(output.text.contains("%0AWaited for a mutex held by thread 71"), "\(output.text)")
        let summary = try String(contentsOfFile: directory.path("summary.md"), encoding: .utf8)
        #expect(summary.contains("| 100 % | 1 | 1 min 0 s | "), "\(summary)")
        let page = try String(contentsOfFile: directory.path("stalls/stalls.html"), encoding: .utf8)
        #expect(page.contains("https://github.com/example/notes/blob/0123abc/./{path}#L{line}"))
    }

    @Test func `paths count from the root of the clone`() throws {
        // As with actions/checkout and `path: package`, and a package in a folder of its repository.
        let package = directory.path("package/Server")
        for folder in [package, directory.path("package/.git")] {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        try DetailedReport.write(to: package, loops: 0)
        let output = try run(
            "cp reports.ndjson \"$STALLWATCH_REPORTS\"", ["working-directory=package/Server"])
        #expect(output.text.contains("::warning file=Server/Sources/Notes App/Wallet.swift,line=3"), "\(output.text)")
        let page = try String(contentsOfFile: package + "/stalls/stalls.html", encoding: .utf8)
        #expect(page.contains("https://github.com/example/notes/blob/0123abc/Server/{path}#L{line}"))
    }

    @Test func `tests without a stall leave no page`() throws {
        let output = try run("true")
        #expect(output.status == 0 && output.text.contains("\nNo stalls.\n"), "\(output.text)")
        #expect(!FileManager.default.fileExists(atPath: directory.path("stalls/stalls.html")))
    }
}

/// The recipes of `docs/exports.md`, run on real reports.
@Suite struct JQRecipeTests {
    private struct Culprit: Decodable {
        let culprit: String?
        let milliseconds: Double
    }

    private static func recipes() throws -> [String] {
        let page = try String(contentsOf: Repository.root.appendingPathComponent("docs/exports.md"), encoding: .utf8)
        return page.components(separatedBy: "```sh\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
    }

    @Test(.needs("jq")) func everyRecipePrintsAnAnswer() throws {
        let directory = try Tool.scenarios.get()
        let recipes = try Self.recipes()
        #expect(recipes.count == 5)
        for recipe in recipes {
            let output = try Tool.shell(
                "set -o pipefail; cd \(directory); PATH=$(dirname \"$TOOL\"):$PATH\n\(recipe)")
            #expect(output.status == 0, "\(recipe)\(output.text)")
            #expect(!output.text.isEmpty, "\(recipe)")
        }
        let sum = try #require(recipes.first { $0.contains("sort_by(-.milliseconds)") })
        let culprits = try Tool.decode([Culprit].self, Tool.shell("cd \(directory); \(sum)").text)
        #expect(culprits.contains { $0.culprit == Tool.spinning })
        let top = try Tool.decode(Tool.Top.self, Tool.run(["top", directory + "/stalls", "--json"]))
        #expect(abs(culprits.reduce(0) { $0 + $1.milliseconds } - top.totalMilliseconds) < 0.01)
    }
}

/// Names that mean something to terminals, pages, Markdown, XML and CI systems go through every command and format.
@Suite struct ToolHostileNamesTests {
    @Test(.needsBrowser, .needsPython(["pyte", "markdown_it"])) func `real readers see only text`() throws {
        let directory = try TemporaryDirectory()
        try DetailedReport.write(to: directory.path, loops: 0)
        let names = try directory.write("names.json", [UInt8](JSONEncoder().encode(HostileNames.make(5_000, seed: 36))))
        let read = try Tool.reader(
            "read-hostile-names.py",
            [Command.product("stallwatch"), directory.path("reports.ndjson"), names])
        #expect(read.status == 0, "\(read.text)")
        #expect(read.output.split(separator: "\n").count == 4, "\(read.text)")
    }
}

/// What `stallwatch test` leaves in the environment of a test process, which a program is by its name.
@Suite struct PreloadEnvironmentTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test func `the libraries that a script preloads stay, and no other`() throws {
        let script = """
            cp /bin/sh x.xctest
            LD_PRELOAD="libm.so.6:$LD_PRELOAD" ./x.xctest -c 'echo "$LD_PRELOAD"'
            LD_PRELOAD="libm.so.6 $LD_PRELOAD libdl.so.2" ./x.xctest -c 'echo "$LD_PRELOAD"'
            """
        let output = try Command(
            program: try Command.product("stallwatch"), arguments: ["test", "--", "sh", "-c", script],
            environment: ["LD_PRELOAD": nil], directory: directory.path
        ).run()
        #expect(output.output == "libm.so.6\nlibm.so.6:libdl.so.2\n", "\(output.text)")
    }
}
