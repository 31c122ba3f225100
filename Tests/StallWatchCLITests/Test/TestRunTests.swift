import ArgumentParser
import Glibc
import LinuxSupport
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct PoolWidthsTests {
    @Test(arguments: [("1", 1...1), ("64", 64...64), ("1..8", 1...8), ("3..3", 3...3)])
    func `a number or a range of threads`(text: String, range: ClosedRange<Int>) throws {
        #expect(try PoolWidths(parsing: text).range == range)
        #expect(try TestCommand.parse(["--pool", text, "--", "true"]).pool?.range == range)
    }

    @Test(arguments: ["", "0", "65", "-1", "1..", "..3", "3..1", "1..65", "1..2..3", "1...3", "one", "1.5"])
    func `other texts are one sentence`(text: String) {
        let error = #expect(throws: ValidationError.self) { try PoolWidths(parsing: text) }
        #expect(error?.message.hasPrefix("'\(text)' is no number of threads") == true)
    }

    @Test(arguments: ["0", "65"]) func `a program has one pool`(text: String) {
        #expect(throws: (any Error).self) { try RunCommand.parse(["--pool", text, "--", "true"]) }
    }
}

@Suite struct RequestDirectoryTests {
    /// The value of TMPDIR is bytes.
    @Test func `a temporary directory need not be UTF-8`() throws {
        let scratch = try TemporaryDirectory()
        let parent = scratch.path + "/" + pathText([0xff])
        try #require(mkdir(pathBytes(parent), 0o700) == 0)
        let requests = try RequestDirectory(in: parent)
        #expect(requests.path.hasPrefix(parent + "/stallwatch-") && access(requests.path, F_OK) == 0)
        close(open(requests.path + "/ask.1", O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
        requests.remove()
        #expect(directoryEntries(parent)?.count == 2, "only . and ..")
    }
}

@Suite struct HangClockTests {
    /// Asks a clock at each time, and returns the times at which a hang is due.
    private func due(_ clock: inout HangClock, at times: [UInt64]) -> [UInt64] {
        var due: [UInt64] = []
        for time in times where clock.isDue(at: time) { due.append(time) }
        return due
    }

    @Test func `a time without progress is one hang`() {
        var clock = HangClock(limit: 30, now: 100)
        #expect(clock.nextDecision(after: 100) == 130)
        #expect(due(&clock, at: [129, 130, 131, 500]) == [130])
        #expect(clock.nextDecision(after: 500) == 530)
    }

    @Test func `progress begins another time`() {
        var clock = HangClock(limit: 30, now: 100)
        clock.markProgress(at: 120)
        #expect(due(&clock, at: [130, 150]) == [150])
        clock.markProgress(at: 160)
        #expect(clock.nextDecision(after: 161) == 190)
        #expect(due(&clock, at: [189, 190]) == [190])
    }

    @Test func `while the reader of the output takes nothing, there is no hang`() {
        var clock = HangClock(limit: 30, now: 100)
        clock.hold()
        #expect(due(&clock, at: [130, 500]).isEmpty)
        #expect(clock.isHeld && clock.nextDecision(after: 500) == 530)
        clock.release()
        clock.markProgress(at: 510)
        #expect(due(&clock, at: [539, 540]) == [540])
    }

    @Test func `a decision that comes late is due at once`() {
        let clock = HangClock(limit: 30, now: 100)
        #expect(clock.nextDecision(after: 400) == 400)
    }
}

@Suite struct TestProgressTests {
    private func running(_ lines: [String]) -> [String] {
        var progress = TestProgress()
        for (index, line) in lines.enumerated() { progress.read(line, at: UInt64(index)) }
        return progress.running.map(\.name)
    }

    @Test func `lines of Swift Testing`() {
        let began = ["◇ Test run started.", "◇ Suite NoteTests started.", "◇ Test load() started."]
        #expect(running(began) == ["load()"])
        #expect(running(began + ["◇ Test \"saves a note\" started."]) == ["load()", "\"saves a note\""])
        #expect(running(began + ["✔ Test load() passed after 0.001 seconds."]).isEmpty)
        #expect(running(began + ["✘ Test load() failed after 0.001 seconds with 1 issue."]).isEmpty)
        #expect(running(began + ["✘ Test load() recorded an issue at NoteTests.swift:7:9: boom"]) == ["load()"])
        #expect(running(began + ["✔ Test run with 1 test in 1 suite passed after 0.1 seconds."]) == ["load()"])
        #expect(running(["➜ Test load() skipped."]).isEmpty)
        #expect(running(began + ["➜ Test load() was cancelled after 0.001 seconds: \"no network\""]).isEmpty)
    }

    @Test func `tests of a process that has crashed do not run`() {
        let began = ["Test Case 'NoteTests.testLoad' started at 2026-11-23 18:00:00.000", "◇ Test load() started."]
        for line in [
            "◇ Test run started.", "Test Suite 'All tests' started at 2026-11-23 18:00:00.000",
            "Test Suite 'Selected tests' started at 2026-11-23 18:00:00.000",
            "error: Exited with unexpected signal code 4", "error: Process 'x' exited with unexpected signal code 4",
        ] {
            #expect(running(began + [line]).isEmpty, "\(line)")
        }
        #expect(running(began + ["the server exited with unexpected signal code 4"]).count == 2)
    }

    @Test func `a test with arguments is one test`() {
        let lines = ["◇ Test sum(of:) started.", "◇ Test case passing 1 argument of → 1 to sum(of:) started."]
        #expect(running(lines) == ["sum(of:)"])
        #expect(running(lines + ["✔ Test sum(of:) with 2 test cases passed after 0.1 seconds."]).isEmpty)
    }

    @Test func `lines in color`() {
        #expect(running(["\u{1B}[90m◇\u{1B}[0m Test load() started."]) == ["load()"])
    }

    @Test func `lines of XCTest`() {
        let began = "Test Case 'NoteTests.testLoad' started at 2026-11-23 18:00:00.000"
        #expect(
            running(["Test Suite 'All tests' started at 2026-11-23 18:00:00.000", began]) == ["NoteTests.testLoad"])
        for end in ["passed", "failed", "skipped"] {
            #expect(running([began, "Test Case 'NoteTests.testLoad' \(end) (0.001 seconds)"]).isEmpty)
        }
    }

    @Test(arguments: [
        "", "Test ", "Test Case '", "The Test run() started.", "[7/9] Compiling Test load() started.", "\0",
    ])
    func `other lines name no test`(line: String) {
        #expect(running([line]).isEmpty)
    }

    @Test func `a test that runs twice at the same time ends once`() {
        let began = ["◇ Test load() started.", "◇ Test load() started."]
        #expect(running(began + ["✔ Test load() passed after 0.001 seconds."]) == ["load()"])
    }
}
