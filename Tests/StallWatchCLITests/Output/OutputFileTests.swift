import Foundation
import Glibc
import LinuxSupport
import TestSupport
import Testing
import TextOutput

@testable import StallWatchCLI

@Suite struct OutputFileTests {
    private let scratch = TemporaryDirectory.ofTest()

    private struct Failure: Error {}

    @Test func aFileIsWrittenAtomically() throws {
        let path = scratch.path + "/file"
        try OutputFile(path: path).write { put in
            try put(Array("one ".utf8))
            #expect(access(path, F_OK) != 0)
            try put(Array("two".utf8))
        }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "one two")
        #expect(scratch.names == ["file"])
    }

    @Test func `a path need not be UTF-8`() throws {
        let folder = scratch.path(pathText([0x63, 0x61, 0x66, 0xe9]))
        try #require(mkdir(pathBytes(folder), 0o700) == 0)
        let path = folder + "/" + pathText([0xff])
        try OutputFile(path: path).write(Array("old".utf8))
        #expect(readSmallFile(path) == "old" && resolvedPath(path).map(fileName) == fileName(path))
        try OutputFile(path: path).write(Array("new".utf8))
        #expect(throws: Failure.self) { try OutputFile(path: path).write { _ in throw Failure() } }
        #expect(readSmallFile(path) == "new")
        #expect(directoryEntries(folder)?.count == 3, "the file, and the two of each directory")
    }

    @Test func aFailedWriteKeepsTheOldFile() throws {
        let path = try scratch.write("file", "old")
        #expect(throws: Failure.self) {
            try OutputFile(path: path).write { put in
                try put(Array("half".utf8))
                throw Failure()
            }
        }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "old")
        #expect(scratch.names == ["file"])
    }

    @Test func `what a killed command has left is removed, and what another one writes is not`() throws {
        let left = [".file.\(getpid()).tmp", ".file.1.abc.tmp"]
        let others = [".file.2.written.tmp", ".file.3.new.tmp", ".file.notes.tmp", ".files.1.tmp"]
        for name in left + others where name != others[1] {
            let path = try scratch.write(name, "")
            var old = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
            let status = utimensat(AT_FDCWD, path, &old, 0)
            try #require(status == 0)
        }
        try scratch.write(others[1], "")
        let other = open(scratch.path(others[0]), O_RDWR | O_CLOEXEC)
        defer { close(other) }
        try #require(flock(other, LOCK_EX | LOCK_NB) == 0)
        try OutputFile(path: scratch.path + "/file").write(Array("new".utf8))
        #expect(scratch.names == others + ["file"])
    }

    @Test func `a link's target is replaced and keeps its permissions`() throws {
        let path = try scratch.write("file", "old")
        #expect(chmod(path, 0o604) == 0)
        #expect(symlink("file", scratch.path + "/link") == 0)
        try OutputFile(path: scratch.path + "/link").write(Array("new".utf8))
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "new")
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o604)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: scratch.path + "/link") == "file")
    }

    @Test(arguments: [["html"], ["export", "--format", "collapsed"]])
    func `what is written is said`(command: [String]) throws {
        try scratch.write([ReportFixture(number: 1, repeats: 2)], in: "stalls/")
        let result = try Tool.run(command + ["stalls", "-o", "file"], in: scratch)
        #expect(result.status == 0 && result.output == "")
        let words = "Wrote file: 1 report of 3 stalls, "
        #expect(result.errors.hasPrefix(words) && result.errors.hasSuffix(" KiB.\n"), "\(result)")
        // Without a report the old file stays, and nothing is beside it.
        let written = try String(contentsOfFile: scratch.path("file"), encoding: .utf8)
        let empty = try Tool.run(command + ["stalls", "--min", "1d", "-o", "file"], in: scratch)
        #expect(empty.status == 1 && empty.errors == "Error: No report matches: 1 report was read.\n")
        #expect(try String(contentsOfFile: scratch.path("file"), encoding: .utf8) == written)
        #expect(scratch.names == ["file", "stalls"])
        #expect(try Tool.run(command + ["stalls", "-o", "none/file"], in: scratch).status == 73)
    }

    @Test func aDirectoryIsRefused() throws {
        #expect(
            throws: CommandFailure(
                .cannotCreate, "\(scratch.path) is not a regular file. Name another file for the output.")
        ) {
            try OutputFile(path: scratch.path)
        }
        #expect(throws: CommandFailure(.cannotCreate, "The output path is empty. Name a file.")) {
            try OutputFile(path: "")
        }
        #expect(
            throws: CommandFailure(.cannotCreate, "\(scratch.path)/a/b cannot be written: No such file or directory")
        ) {
            try OutputFile(path: scratch.path + "/a/b").write([])
        }
    }

    /// SIGTERM during writing, handled like Ctrl-C, leaves no temporary file and whole reports; it may come after all.
    @Test func anInterruptionLeavesNoPartialFile() throws {
        let input = try scratch.write("stalls.ndjson", (0..<3_000).map { ReportFixture(number: $0).line }.joined())
        let process = try Tool.command(["symbolicate", input, "--output", scratch.path + "/named"]).process()
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run(atMost: Process.timeout)
        let named = scratch.path + "/named"
        func count() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: named))?.count ?? 0 }
        while count() < 20, process.isRunning { usleep(1_000) }
        process.terminate()
        process.waitUntilExit()
        let names = try FileManager.default.contentsOfDirectory(atPath: named)
        let isInterrupted = process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGTERM
        #expect(isInterrupted || names.count == 3_000)
        #expect(names.allSatisfy { $0.hasPrefix("stall-") && $0.hasSuffix(".json") })
        #expect(try Tool.run(["top", named, "--strict", "--json"]).output.contains("\"reports\" : \(names.count)"))
    }
}

@Suite struct GitHubAnnotationsTests {
    private func finding(_ severity: Finding.Severity, file: String? = "/src/a.swift", line: Int? = 7) -> Finding {
        Finding(
            severity: severity, loop: "main", title: "300 ms in f(_:), g",
            message: "100 %\nof it, blocked: in \"read\"",
            cause: "io", file: file, line: line, milliseconds: 300
        )
    }

    @Test func propertiesAndMessagesAreEscaped() {
        #expect(
            GitHubAnnotations.text([finding(.error)], root: "/src")
                == "::error file=a.swift,line=7,title=300 ms in f(_%3A)%2C g::100 %25%0Aof it, blocked: in \"read\"\n"
        )
    }

    @Test func withoutAFileThereIsNoLine() {
        let text = GitHubAnnotations.text([finding(.warning, file: nil)], root: "/src")
        #expect(text.hasPrefix("::warning title=300 ms"))
    }

    @Test func filesInTheCheckoutAreRelative() {
        #expect(GitHubAnnotations.relative("/src/a/b.swift", to: "/src") == "a/b.swift")
        #expect(GitHubAnnotations.relative("/srcs/b.swift", to: "/src") == "/srcs/b.swift")
        #expect(GitHubAnnotations.relative("b.swift", to: "/src") == "b.swift")
    }

    @Test func whatGitHubDropsIsCounted() {
        let many = Array(repeating: finding(.warning), count: 12) + [finding(.error), finding(.passed)]
        let lines = GitHubAnnotations.text(many, root: "/src").split(separator: "\n")
        #expect(lines.count == 12)
        #expect(lines.count { $0.hasPrefix("::warning ") } == GitHubAnnotations.maximumShown)
        #expect(lines.first?.hasPrefix("::error ") == true)
        #expect(lines.last == "::notice title=StallWatch::…and 2 more, which the job's summary has.")
        #expect(GitHubAnnotations.text([finding(.passed)], root: "/src") == "")
    }
}

@Suite struct JUnitDocumentTests {
    private func finding(_ severity: Finding.Severity) -> Finding {
        Finding(
            severity: severity, loop: "main", title: "300 ms in <T>(\"a\" & b)", message: "Blocked\u{1}.", cause: "io",
            file: "/src/a.swift", line: 7, milliseconds: 300
        )
    }

    @Test func eachFindingIsATestCase() {
        #expect(
            JUnitDocument(findings: [finding(.warning), finding(.passed)]).text == """
                <?xml version="1.0" encoding="UTF-8"?>
                <testsuites tests="2" failures="1" errors="0" time="0.600">
                  <testsuite name="stallwatch" skipped="0" tests="2" failures="1" errors="0" time="0.600">
                    <testcase classname="main" name="300 ms in &lt;T&gt;(&quot;a&quot; &amp; b)" time="0.300">
                      <failure type="io" message="Blocked\u{fffd}.">Blocked\u{fffd}.
                /src/a.swift:7</failure>
                    </testcase>
                    <testcase classname="main" name="300 ms in &lt;T&gt;(&quot;a&quot; &amp; b)" time="0.300"/>
                  </testsuite>
                </testsuites>

                """
        )
    }

    @Test func noStallIsATestThatPassed() {
        let text = JUnitDocument(findings: []).text
        #expect(text.contains("<testsuites tests=\"1\" failures=\"0\""))
        #expect(text.contains("name=\"no stalls\""))
    }
}

@Suite struct TextTests {
    @Test(
        arguments: [
            (0, "0 ms"), (0.25, "0.250 ms"), (12.4, "12 ms"), (999.4, "999 ms"), (999.6, "1.00 s"), (1_250, "1.25 s"),
            (61_000, "1 min 1 s"), (3_599_600, "1 h 0 min"), (7_500_000, "2 h 5 min"),
        ] as [(Double, String)])
    func durations(milliseconds: Double, text: String) { #expect(milliseconds.duration == text) }

    @Test(
        arguments: [(1.005, 1, "1.0"), (-0.25, 1, "-0.3"), (12, 0, "12"), (0.05, 2, "0.05"), (1e300, 2, "1e+300")]
            as [(Double, Int, String)])
    func numbers(value: Double, digits: Int, text: String) { #expect(value.fixed(digits) == text) }

    @Test func theBarFits() {
        #expect(
            ProgressBar.text("reading", done: 5, total: 10, columns: 40) == "reading ███████████░░░░░░░░░░░░   50 %"
        )
        for columns in 1...100 {
            #expect(ProgressBar.text("reading", done: 3, total: 7, columns: columns).columns < columns)
        }
    }
}
