import Foundation
import Glibc
import LinuxSupport
import Testing
import TestSupport

@testable import StallReports

/// `stallwatch run`, with programs that know nothing of StallWatch.
@Suite(.serialized, .ownThread) struct RunTests {
    let directory = TemporaryDirectory.ofTest()

    var reports: String { directory.path("reports") }

    func writtenReports() throws -> [StallReport] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: reports)) ?? []
        return try names.filter(StallReport.isFileName).map { name in
            let report = try directory.report("reports/\(name)")
            // A program that ends soon leaves no time for names. Without them a report has what it takes to find them.
            return report.culprit == nil ? report.symbolicated() : report
        }
    }

    /// The reports of stalls in a function: a busy machine may add others.
    func stalls(in function: String) throws -> [StallReport] {
        try writtenReports().filter { $0.culprit?.function.contains(function) == true }
    }

    /// Whether a text ends with the line about stalls, of which a busy machine may add some.
    func tellsOfStalls(_ text: String) -> Bool {
        let end = ", see: stallwatch show \(reports)\n"
        return text.hasSuffix(end) && text.dropLast(end.count).contains(/: [0-9]+ stalls?$/)
    }

    func compile(_ name: String, _ text: String) throws -> String {
        let source = try directory.write(
            "\(name).c", "#define _DEFAULT_SOURCE\n#include <unistd.h>\nint main(void) { \(text) }\n")
        let clang = try #require(Command.find("clang"))
        try Command(program: clang, arguments: [source, "-o", directory.path(name)]).succeed()
        return directory.path(name)
    }

    func run(_ words: [String], options: [String] = [], input: String = "") throws -> Command.Output {
        var command = Command(
            program: try Command.product("stallwatch"),
            arguments: ["run", "--output", "reports", "--threshold", "150ms"] + options + ["--"] + words,
            directory: directory.path)
        command.input = input
        return try command.run()
    }

    private func runAlone(_ words: [String], input: String = "") throws -> Command.Output {
        try Command(
            program: words[0], arguments: Array(words.dropFirst()), directory: directory.path, input: input
        ).run()
    }

    private static let functions: [RunProgram: String] = [
        .glib: "wait_in_a_callback", .runLoop: "waitInATimer()", .asyncMain: "waitOnTheMainActor()",
    ]

    @Test(arguments: RunProgram.available)
    func `a stall of an unmodified program is reported`(program: RunProgram) throws {
        let words = [try program.path(), "stall"]
        let output = try run(words, input: "a line\n")
        let alone = try runAlone(words, input: "a line\n")
        #expect(output.status == alone.status && output.status == 7)
        #expect(output.output == alone.output)
        let line = output.errors.dropFirst(alone.errors.count)
        #expect(output.errors.hasPrefix(alone.errors))
        #expect(tellsOfStalls(String(line)), "\(output.errors)")

        let stalls = try stalls(in: Self.functions[program] ?? "?")
        #expect(stalls.count == 1)
        let report = try #require(stalls.first)
        #expect(report.cause?.kind == .sleep)
        #expect(report.state == .ended)
        #expect(report.loop.label == (program == .glib ? "glib" : "main"))
        #expect(program != .glib || report.context?.label == "GSource save the notes")
        #expect(report.durationMilliseconds >= 350)
        // After its first suspension an async main runs on the thread that serves the main queue.
        if program != .asyncMain { #expect(report.loop.thread?.id == Int32(report.process.pid)) }
        let symbols = report.stacks.joined().compactMap { report.frames[$0].symbol }
        #expect(symbols.contains { $0.contains(Self.outerFunctions[program] ?? "?") }, "\(symbols)")
    }

    @Test(arguments: [1, 3]) func `a program gets a narrower or wider task pool`(width: Int) throws {
        let words = [try RunProgram.asyncMain.path(), "pool", "\(width)"]
        let output = try run(words, options: ["--pool", "\(width)"])
        #expect(output.output == "\(width)\n" && output.status == 0, "\(output.errors)")
    }

    @Test(arguments: [(1, 1), (1, 2), (2, 4), (2, 8)])
    func `a report says how many threads of how many are pinned`(pinned: Int, width: Int) throws {
        let words = [try RunProgram.asyncMain.path(), "pin", "\(pinned)", reports]
        let output = try run(words, options: ["--pool", "\(width)"])
        #expect(output.status == 0, "\(output.errors)")
        let written = try writtenReports().filter { $0.kind == .pinned }
        #expect(written.count == pinned)
        for report in written {
            #expect(report.pool?.width == width && report.loop.kind == .cooperativePool, "\(report.summary)")
            #expect(report.culprit?.function.contains("keepTheThread(until:in:)") == true, "\(report.summary)")
            #expect(report.context?.taskName?.hasPrefix("pin ") == true && report.cause?.kind == .sleep)
        }
        #expect(written.compactMap(\.pool?.pinnedThreads).max() == pinned)
    }

    @Test func `a tool that waits for its input stalls only what waits for it`() throws {
        let words = "'\(try RunProgram.asyncMain.path())' read"
        let line = "(sleep 3; echo; sleep 2) | $TOOL run --threshold 150ms --output '\(reports)' -- \(words)"
        #expect(try Tool.shell(line).status == 0)
        let reads = try writtenReports().filter { $0.cause?.systemCall?.name == "read" }
        #expect(reads.count == 1 && reads.first?.victims?.mainQueueItems ?? 0 > 0, "\(reads.map(\.summary))")
    }

    /// What it does then counts from the first look that met it.
    @Test func `a tool that computes after its input has come stalls`() throws {
        let words = "'\(try RunProgram.asyncMain.path())' compute"
        let line = "(sleep 3; echo) | $TOOL run --threshold 150ms --output '\(reports)' -- \(words)"
        #expect(try Tool.shell(line).status == 0)
        let written = try writtenReports()
        #expect(written.count == 1 && written.first?.culprit?.function == "compute()", "\(written.map(\.summary))")
        #expect(written.first.map { $0.durationMilliseconds < 2_000 } == true)
    }

    @Test(.needsGLib) func `a source of GLib without a name is named by its kind`() throws {
        _ = try run([try RunProgram.glib.path(), "unnamed"])
        let stalls = try stalls(in: "wait_in_a_callback")
        #expect(stalls.map(\.context?.label) == ["GSource without a name (timeout)"])
    }

    /// Functions near the beginnings of the programs' stacks.
    private static let outerFunctions: [RunProgram: String] = [
        .glib: "g_main_loop_run", .runLoop: "CFRunLoopRunSpecific", .asyncMain: "swift_job_run",
    ]

    @Test func `a program that becomes a daemon is said not to be watched`() throws {
        let program = try compile("becomes-daemon", "return daemon(1, 1);")
        let output = try run([program])
        #expect(output.status == 0)
        #expect(
            output.errors
                == "stallwatch: becomes-daemon: it goes on as a daemon, in a child process, which is not watched: "
                + "let it run in the foreground\n")
        #expect(try run([program], options: ["--quiet"]).errors.isEmpty)
    }

    @Test func `a terminal obeys nothing in the name of a program`() throws {
        let output = try run([try compile("a\u{1b}[2J\nb", "return daemon(1, 1);")])
        #expect(output.errors.hasPrefix("stallwatch: a?[2J?b: it goes on as a daemon, "), "\(output.errors)")
    }

    @Test(.needsGLib) func `a folder whose name is not UTF-8 receives the reports`() throws {
        let start = "d=$(printf 'caf\\351') && mkdir $d && cd $d && exec \"$0\" run --threshold 150ms -- \"$1\" stall"
        let output = try Command(
            program: "/bin/sh",
            arguments: ["-c", start, try Command.product("stallwatch"), try RunProgram.glib.path()],
            directory: directory.path
        ).run()
        #expect(output.status == 7, "\(output.text)")
        let folder = pathText([0x63, 0x61, 0x66, 0xe9])
        #expect((directoryEntries(directory.path) ?? []).map(\.name).filter { !$0.hasPrefix(".") } == [folder])
        let names = (directoryEntries(directory.path(folder) + "/stalls") ?? []).map(\.name)
        // A busy machine may add some.
        #expect(names.contains(where: StallReport.isFileName), "\(names)")
    }

    @Test func `STALLWATCH_REPORTS may name a folder that is not UTF-8`() throws {
        let start = "STALLWATCH_REPORTS=$(printf 'caf\\351') exec \"$0\" stalls elsewhere 50 1 150 150"
        try Command(
            program: "/bin/sh", arguments: ["-c", start, try Command.product("stallwatch-test-host")],
            directory: directory.path
        ).succeed()
        let names = (directoryEntries(directory.path) ?? []).map(\.name).filter { !$0.hasPrefix(".") }
        #expect(names == [pathText([0x63, 0x61, 0x66, 0xe9])])
    }

    /// A thread with this policy can start none, as one beyond a limit on threads.
    @Test func `a program that may have no other thread says that it is not watched`() throws {
        let times = ["--sched-runtime", "5000000", "--sched-deadline", "10000000", "--sched-period", "10000000"]
        let deadline = ["-d"] + times + ["0"]
        guard let chrt = Command.find("chrt"), let nothing = Command.find("true"),
            try Command(program: chrt, arguments: deadline + [nothing]).run().status == 0
        else { return notRun("SCHED_DEADLINE is refused") }
        let words = [try Command.product("stallwatch"), "run", "--", try compile("plain", "return 3;")]
        let output = try Command(program: chrt, arguments: deadline + words, directory: directory.path).run()
        #expect(output.status == 3)
        #expect(output.errors == "stallwatch: plain: it is not watched: the system refuses it another thread\n")
    }

    @Test(.needsGLib, arguments: ["end", "nest"])
    func `what is no turn of a GLib loop is no stall`(mode: String) throws {
        let words = [try RunProgram.glib.path(), mode]
        let output = try run(words)
        let alone = try runAlone(words)
        #expect((output.status, output.output, output.errors) == (alone.status, alone.output, alone.errors))
        #expect(try writtenReports().isEmpty)
    }

    @Test(.needsGLib) func `the program of a script is watched`() throws {
        let program = try RunProgram.glib.path()
        for (name, line) in [("direct", program), ("by-env", "/usr/bin/env -S \(program)")] {
            _ = try directory.program(name, from: directory.write("text", "#!\(line) stall\n"))
            #expect(try run(["./\(name)"], options: ["--quiet"]).errors == "to standard error\n")
        }
        #expect(try stalls(in: "wait_in_a_callback").count == 2)
    }

    @Test(.needsGLib) func `a variable does the same as an option`() throws {
        let program = try RunProgram.glib.path()
        var command = Command(
            program: try Command.product("stallwatch"), arguments: ["run", "--", program, "stall"],
            environment: [
                "STALLWATCH_REPORTS": reports, "STALLWATCH_THRESHOLD": "1h", "STALLWATCH_QUIET": "1",
                "STALLWATCH_LOOP": "glib", "STALLWATCH_CHILDREN": "0",
            ], directory: directory.path)
        #expect(try command.run().status == 7)
        #expect(try writtenReports().isEmpty)
        command.environment["STALLWATCH_THRESHOLD"] = "150ms"
        #expect(try command.run().errors == "to standard error\n")
        #expect(try stalls(in: "wait_in_a_callback").count == 1)
        command.environment["STALLWATCH_THRESHOLD"] = "soon"
        let refused = try command.run()
        #expect(refused.status == 2)
        #expect(refused.errors.contains("STALLWATCH_THRESHOLD: 'soon' is not a duration."))
    }
}

extension Trait where Self == ConditionTrait {
    static var needsGLib: Self {
        .enabled(if: RunProgram.glib.isAvailable, "the headers of GLib are not installed")
    }
}

enum RunProgram: String, CaseIterable, Sendable {
    case glib = "glib_program.c"
    case runLoop = "run_loop.swift"
    case asyncMain = "async_main.swift"

    /// Whether this machine can compile it.
    var isAvailable: Bool { self != .glib || Self.glibOptions != nil }

    static let available = allCases.filter(\.isAvailable)

    /// The compiler's options for GLib; `nil` if its headers are not installed.
    static let glibOptions: [String]? = {
        guard let program = Command.find("pkg-config"),
            let words = try? Command(program: program, arguments: ["--cflags", "--libs", "glib-2.0"]).succeed()
        else { return nil }
        return words.split(whereSeparator: \.isWhitespace).map(String.init)
    }()

    /// The directory of the compiled programs, which lives as long as the tests.
    private static let directory = Result { try TemporaryDirectory() }
    private static let paths = Dictionary(
        uniqueKeysWithValues: available.map { program in (program, Result { try program.compile() }) })

    func path() throws -> String { try #require(Self.paths[self]).get() }

    private func compile() throws -> String {
        let path = try Self.directory.get().path(rawValue.split(separator: ".")[0].description)
        let source = Repository.support.appendingPathComponent("Run/\(rawValue)").path
        if self == .glib {
            try Command(
                program: try #require(Command.find("clang")),
                arguments: ["-g", "-O1", source, "-o", path] + (Self.glibOptions ?? [])
            ).succeed()
        } else {
            let library = self == .asyncMain ? ["-parse-as-library"] : []
            try Command(
                program: try #require(Command.find("swiftc")),
                arguments: ["-g", "-Onone", "-swift-version", "6", "-module-name", "Program", source, "-o", path]
                    + library
            ).succeed()
        }
        return path
    }
}
