import Foundation
import Glibc
import LinuxSupport
import StallReports
import TestSupport
import Testing
import TextOutput

@testable import StallWatchCLI

@Suite struct TailTests {
    private let scratch = TemporaryDirectory.ofTest()

    /// `tail` running on a directory, with what it has printed so far.
    private final class Following {
        private let process: Process
        private let scratch: TemporaryDirectory
        private let output: String

        init(_ scratch: TemporaryDirectory, _ arguments: [String] = []) throws {
            self.scratch = scratch
            output = scratch.path + "/output"
            process = try Tool.command(["tail", scratch.path + "/stalls"] + arguments).process()
            process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: scratch.write("output", "")))
            process.standardError = FileHandle.nullDevice
            try process.run(atMost: Process.timeout)
        }

        deinit { process.kill() }

        var text: String { (try? String(contentsOfFile: output, encoding: .utf8)) ?? "" }

        /// Waits for the output to have this many whole lines.
        func lines(_ count: Int) -> [String] {
            _ = eventually { text.count { $0 == "\n" } >= count }
            return text.split(separator: "\n").map(String.init)
        }

        /// Sends SIGTERM, which is handled like Ctrl-C; background jobs of a shell ignore Ctrl-C.
        func end() -> Int32 {
            process.terminate()
            process.waitUntilExit()
            return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
        }
    }

    @Test func stallsAreShownWhenTheyBeginAndEnd() throws {
        try scratch.write(
            [ReportFixture(number: 1), ReportFixture(number: 2, state: "ongoing", milliseconds: 250)], in: "stalls/")
        let following = try Following(scratch)
        #expect(
            following.lines(1) == [
                "08:00:00  main        stalls, 250 ms so far   lock  NoteStore.save(_:)  NoteStore.swift:88"
            ])
        try scratch.write([ReportFixture(number: 2, state: "ongoing", milliseconds: 400)], in: "stalls/")
        try scratch.write([ReportFixture(number: 3, milliseconds: 700, loop: "storage", repeats: 3)], in: "stalls/")
        #expect(
            following.lines(2).last
                == "08:00:00  storage     stalled for 700 ms      lock  NoteStore.save(_:)  NoteStore.swift:88  +3 like it"
        )
        try scratch.write([ReportFixture(number: 2, milliseconds: 90_000)], in: "stalls/")
        #expect(
            following.lines(3).last
                == "08:00:00  main        stalled for 1 min 30 s  lock  NoteStore.save(_:)  NoteStore.swift:88")
        #expect(following.end() == 0)
        #expect(following.lines(3).count == 3)
    }

    @Test func `it waits for the standard folder, whose stalls are all new`() throws {
        var command = try Tool.command(["tail"])
        command.directory = scratch.path
        let process = command.process()
        let paths = try ["output", "errors"].map { try scratch.write($0, "") }
        process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: paths[0]))
        process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: paths[1]))
        try process.run(atMost: Process.timeout)
        defer { process.kill() }
        func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
        #expect(eventually { text(paths[1]) == "Waiting for stalls/ to appear. Ctrl-C ends it.\n" })
        try scratch.write([ReportFixture(number: 1)], in: "stalls/")
        #expect(eventually { text(paths[0]).contains("main        stalled for 500 ms ") })
        process.terminate()
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 0)
    }

    @Test func eventsAsJSON() throws {
        try scratch.write([ReportFixture(number: 1), ReportFixture(number: 2, loop: "storage")], in: "stalls/")
        let following = try Following(scratch, ["--json", "--all", "--loop", "storage"])
        let line = try #require(following.lines(1).first)
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        #expect(object?["event"] as? String == "ended")
        #expect((object?["report"] as? [String: Any])?["id"] as? String == ReportFixture(number: 2).id)
        #expect(following.end() == 0)
        #expect(following.lines(1).count == 1)
    }

    /// In a pod of Kubernetes, containers have one host name, and each has its own processes.
    @Test func `a process of another container is not known to be gone`() throws {
        var report = ReportFixture(
            state: "ongoing", pid: 0x3f_ffff, startTicks: 1, bootID: text("/proc/sys/kernel/random/boot_id"),
            hostname: text("/proc/sys/kernel/hostname"))
        func isGone() throws -> Bool {
            try ReportSummary(json: Array(report.json.utf8)).processIsGone
        }
        #expect(try !isGone(), "a report of an older version does not name its namespace")
        report.pidNamespace = "pid:[1]"
        #expect(try !isGone())
        report.pidNamespace = readLink("/proc/self/ns/pid")
        #expect(try isGone())
        report.hostname = ""
        #expect(try isGone(), "a redaction may remove it")
    }

    @Test func `a process that runs or has ended is not hidden`() {
        #expect(!InspectedProcess.isHidden(getpid()) && !InspectedProcess.isHidden(0x3f_ffff))
    }

    private func text(_ path: String) -> String { readSmallFile(path).map(firstLine) ?? "" }

    /// A process that is killed during a stall cannot report the end of the stall.
    @Test func aStallEndsWithItsProcess() throws {
        func line(_ path: String) throws -> String {
            try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)
        }
        let sleeper = Command(program: "/bin/sleep", arguments: ["60"]).process()
        try sleeper.run(atMost: Process.timeout)
        defer { sleeper.kill() }
        let fields = try line("/proc/\(sleeper.processIdentifier)/stat").split(separator: " ")
        let report = ReportFixture(
            number: 2, state: "ongoing", milliseconds: 250, pid: sleeper.processIdentifier,
            startTicks: try #require(UInt64(fields[21])), bootID: try line("/proc/sys/kernel/random/boot_id"),
            hostname: try line("/proc/sys/kernel/hostname"), pidNamespace: readLink("/proc/self/ns/pid")
        )
        try scratch.write([report], in: "stalls/")
        let following = try Following(scratch)
        #expect(following.lines(1).count == 1)
        sleeper.kill()
        sleeper.waitUntilExit()
        #expect(following.lines(2).last?.contains("process died, after 250 ms") == true)
        #expect(following.end() == 0)
        #expect(following.lines(2).count == 2)
    }

    @Test func itEndsWhenTheReaderCloses() throws {
        try scratch.write([ReportFixture(number: 1)], in: "stalls/")
        let process = try Tool.command(["tail", scratch.path + "/stalls"]).process()
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run(atMost: Process.timeout)
        try pipe.fileHandleForWriting.close()
        try pipe.fileHandleForReading.close()
        withExtendedLifetime(scratch) { process.waitUntilExit() }
        #expect(process.terminationReason == .exit && process.terminationStatus == 0)
    }

    @Test func aFileIsRefused() throws {
        try scratch.write("file", "")
        let result = try Tool.run(["tail", "file"], in: scratch)
        #expect(result.status == 2 && result.errors == "Error: file cannot be read: Not a directory\n", "\(result)")
    }

    @Test func theStatusLineShowsOngoingStalls() throws {
        final class Printed { var text = "" }
        let printed = Printed()
        let printer = TailPrinter(terminal: Terminal(isTerminal: true, width: 60), isJSON: false) { printed.text += $0 }
        var report = ReportSummary(try StallReport(jsonData: ReportFixture(state: "ongoing").bytes))
        report.startedAt = Timestamp(microsecondsSince1970: 1_000_000)
        try printer.showOngoing([report, report], now: 13_300_000_000)
        #expect(printed.text == "\r\u{1b}[Kmain and 1 more stalled for 12.30 s in NoteStore.save(_:)")
        printed.text = ""
        try printer.showOngoing([], now: 14_000_000_000)
        #expect(printed.text == "\r\u{1b}[K")
        // A terminal without control sequences, as of Emacs, would show them.
        printed.text = ""
        let plain = TailPrinter(terminal: Terminal(isTerminal: true), isJSON: false, hasStatusLine: false) {
            printed.text += $0
        }
        try plain.showOngoing([report], now: 15_000_000_000)
        #expect(printed.text == "")
    }

    /// The cause and the stacks of a report change while the stall lasts.
    @Test func `a stall that was shown ends, also if it matches no more`() throws {
        final class Printed { var text = "" }
        let printed = Printed()
        let printer = TailPrinter(terminal: Terminal(), isJSON: false) { printed.text += $0 }
        try scratch.write([ReportFixture(number: 2, state: "ongoing", milliseconds: 250)], in: "stalls/")
        var filter = ReportFilter()
        filter.causes = ["lock"]
        var followed = FollowedDirectory(watch: try DirectoryWatch(path: scratch.path("stalls")), filter: filter)
        try followed.poll(printer)
        #expect(followed.ongoing.count == 1)
        try scratch.write([ReportFixture(number: 2, milliseconds: 900, cause: "cpu")], in: "stalls/")
        try scratch.write([ReportFixture(number: 3, milliseconds: 700, cause: "cpu")], in: "stalls/")
        try followed.poll(printer)
        #expect(followed.ongoing.isEmpty && printed.text.contains("  stalled for 900 ms "), "\(printed.text)")
        #expect(!printed.text.contains("700 ms"), "\(printed.text)")
    }

    /// A repeat has its file removed when the next one like it ends, which may be between two looks.
    @Test func `a stall whose file is gone does not go on`() throws {
        final class Printed { var text = "" }
        let printed = Printed()
        let printer = TailPrinter(terminal: Terminal(), isJSON: false) { printed.text += $0 }
        let report = ReportFixture(number: 2, state: "ongoing", milliseconds: 250)
        try scratch.write([report], in: "stalls/")
        var followed = FollowedDirectory(
            watch: try DirectoryWatch(path: scratch.path("stalls")), filter: ReportFilter())
        try followed.poll(printer)
        try followed.poll(printer)
        #expect(followed.ongoing.count == 1)
        try scratch.write([ReportFixture(number: 3)], in: "stalls/")
        try FileManager.default.removeItem(atPath: scratch.path("stalls/" + report.fileName))
        try followed.poll(printer)
        try followed.poll(printer)
        #expect(followed.ongoing.isEmpty)
        #expect(printed.text.components(separatedBy: "end not observed, after 250 ms").count == 2, "\(printed.text)")
    }

    @Test func eachEventIsReturnedOnce() throws {
        var follower = StallFollower()
        var report = ReportSummary(try StallReport(jsonData: ReportFixture(state: "ongoing").bytes))
        #expect(follower.update(with: report) == .began)
        #expect(follower.update(with: report) == nil)
        #expect(follower.dead { _ in true } == [report])
        #expect(follower.dead { _ in true } == [])
        // The process still runs, in another pid namespace.
        #expect(follower.update(with: report) == nil)
        // The next monitor has finished the report.
        report.state = .abandoned
        #expect(follower.update(with: report) == nil)
        report.state = .ended
        #expect(follower.update(with: report) == .ended)
        #expect(follower.update(with: report) == nil)
        #expect(follower.ongoing.isEmpty)
    }
}
