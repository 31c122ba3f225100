import CUnwindTestSupport
import Foundation
import Glibc
import LinuxSupport
import StallReports
import Testing
import TestSupport

/// What supervisors learn of a real service: by systemd's protocol, from the health file and from the tool.
///
/// When a message is due is decided in `ServiceFeedTests`; here each is waited for.
@Suite(.serialized, .ownThread) struct HealthTests {
    /// How long nothing may come, in milliseconds: a feed is due every 200 ms, and a manager acts after 400.
    private static let silence: UInt64 = 1_000

    @Test func `a service is ready, fed and stopped`() throws {
        let host = try HealthHostProcess("none")
        let ready = try #require(host.ready())
        #expect(ready.hasPrefix("READY=1\nWATCHDOG=1\n"))
        #expect(ready.hasSuffix("STATUS=1 loop makes progress"))
        #expect(host.isFed(5))
        #expect(host.becomesHealthy())
        #expect(try host.health() == .init(0, "ok: 1 loop makes progress\n"))
        #expect(try host.health(byFile: true) == .init(0, "ok: 1 loop makes progress\n"))
        host.command("stop")
        #expect(host.message { $0.hasPrefix("STOPPING=1\nSTATUS=no monitor runs") } != nil)
        let end = host.finish()
        #expect(end.lines == ["runs", "stopped stopped 0"])
        #expect(end.status == 0)
        #expect(host.record?.state == .stopped)
        #expect(try host.health(byFile: true).status == 2)
    }

    @Test(arguments: ["lock", "spin"]) func `a service that hangs is not fed`(hang: String) throws {
        let host = try HealthHostProcess(hang)
        #expect(host.ready() != nil)
        #expect(host.isFed(2), "fed until it hangs")
        host.hang()
        let status = try #require(host.stalledStatus())
        #expect(status.hasPrefix("main stalled and has not come back after "), "\(status)")
        // The file and the messages are written by threads of their own.
        #expect(eventually { host.record?.state == .stalled })
        let changed = try #require(host.changedAt)
        let checked = try #require(host.record?.checkedAtMonotonicMilliseconds)
        let messages = host.messages(milliseconds: Self.silence)
        #expect(HealthHostProcess.feeds(messages) == 0)
        // The function's name comes with a second message.
        let named = ([status] + messages.compactMap(host.status)).last { $0.contains(" in ") }
        #expect((named ?? host.stalledStatus { $0.contains(" in ") }) != nil)
        #expect(eventually { (host.record?.checkedAtMonotonicMilliseconds).map { $0 > checked } ?? false })
        #expect(host.changedAt == changed, "the record is new, and the file's age grows")
        let record = try #require(host.record)
        #expect(record.state == .stalled)
        #expect(record.loops.map(\.state) == [.stalled])
        for byFile in [false, true] {
            let answer = try host.health(byFile: byFile)
            #expect(answer.status == 1)
            #expect(answer.text.hasPrefix("stuck: main stalled and has not come back after "), "\(answer.text)")
        }
    }

    @Test func `a service that goes on is fed again`() throws {
        let host = try HealthHostProcess("recover")
        #expect(host.ready() != nil)
        host.hang()
        #expect(host.stalledStatus() != nil)
        #expect(HealthHostProcess.feeds(host.messages(milliseconds: Self.silence)) == 0)
        host.command("go on")
        let status = host.message { $0.contains("last stall") }.flatMap(host.status)
        #expect(status?.hasPrefix("1 loop makes progress; last stall: main stalled for ") == true, "\(status ?? "")")
        #expect(host.isFed(2))
        #expect(eventually { host.record?.state == .ok && host.record?.stall?.isOngoing == false })
        #expect(try host.health().status == 0)
    }

    @Test func `a service that is turned off is fed while it hangs`() throws {
        let host = try HealthHostProcess("recover", environment: ["STALLWATCH": "off", "STALLWATCH_THRESHOLD": "5ms"])
        let ready = try #require(host.ready())
        #expect(ready.hasPrefix("READY=1\nWATCHDOG=1\n"))
        let sentence = "the monitor is turned off by STALLWATCH=off in the environment of the program"
        #expect(ready.hasSuffix("STATUS=\(sentence)"))
        host.command("hang")
        #expect(host.isFed(5))
        #expect(host.becomesHealthy())
        #expect(host.record?.state == .off)
        for byFile in [false, true] { #expect(try host.health(byFile: byFile) == .init(0, "ok: \(sentence)\n")) }
        host.command("stop")
        #expect(host.finish().lines == ["runs", "hangs", "stopped stopped 0"])
        #expect(TemporaryDirectory.reportCount(host.directory.path("stalls")) == 0)
        let line =
            "StallWatch: the environment changes this monitor: STALLWATCH=off: stalls are neither watched nor reported"
        #expect(host.errorText.split(separator: "\n").filter { $0.hasPrefix("StallWatch: ") } == [line[...]])
    }

    @Test func `a line on a standard error without a reader does not end the program`() throws {
        let host = try HealthHostProcess("recover", environment: ["STALLWATCH": "off"], isHeard: false)
        #expect(host.ready() != nil)
        host.command("stop")
        let end = host.finish()
        #expect(end.reason == .exit && end.lines.last == "stopped stopped 0", "\(end)")
    }

    @Test func `a terminal obeys nothing in a line on standard error`() throws {
        let host = try HealthHostProcess("recover", environment: ["STALLWATCH": "o\u{1b}[2J"])
        #expect(host.ready() != nil)
        host.command("stop")
        #expect(host.finish().reason == .exit)
        let text = host.errorText
        #expect(text.contains("STALLWATCH is ignored: 'o\u{fffd}[2J' is not off\n"), "\(text)")
    }

    @Test func `a service that was stopped by a signal is never called dead`() throws {
        let host = try HealthHostProcess("none")
        #expect(host.ready() != nil)
        #expect(host.becomesHealthy())
        kill(host.pid, SIGSTOP)
        #expect(eventually { ProcessPause.of(host.pid) == .signal })
        // What was sent before.
        _ = host.messages(milliseconds: 100)
        // Longer than the three intervals and two seconds after which a record is out of date.
        #expect(HealthHostProcess.feeds(host.messages(milliseconds: 3_000)) == 0)
        let sentence =
            "cannot tell: process \(host.pid) is stopped by a signal: continue it with kill -CONT \(host.pid)\n"
        for byFile in [false, true] {
            let answer = try host.health(byFile: byFile)
            #expect(answer == .init(2, sentence), "\(answer)")
        }
        kill(host.pid, SIGCONT)
        // Asked at once, while the record is out of date.
        #expect(try host.health() == .init(0, "ok: 1 loop makes progress\n"))
        var after: [String] = []
        let isFedAgain = host.isFed(3, &after)
        #expect(isFedAgain)
        #expect(after.compactMap(host.status) == [], "no message names a stall")
        #expect(eventually { host.record?.state == .ok })
        host.command("stop")
        #expect(host.finish().lines == ["runs", "stopped stopped 0"], "no stall was counted")
        #expect(TemporaryDirectory.reportCount(host.directory.path("stalls")) == 0)
    }

    @Test func `a hang lasts through a stop by a signal`() throws {
        let host = try HealthHostProcess("sleep")
        #expect(host.ready() != nil)
        host.hang()
        #expect(host.stalledStatus() != nil)
        kill(host.pid, SIGSTOP)
        #expect(eventually { ProcessPause.of(host.pid) == .signal })
        usleep(1_000_000)
        kill(host.pid, SIGCONT)
        #expect(HealthHostProcess.feeds(host.messages(milliseconds: Self.silence)) == 0)
        #expect(try host.health().status == 1)
    }

    /// A debugger holds the main thread; the watchdog goes on.
    @Test(.needsPtrace) func `a service that a debugger holds is neither healthy nor stuck`() throws {
        let host = try HealthHostProcess("debug")
        #expect(host.ready() != nil)
        host.command("hang")
        // A thread that is held before it sleeps has its whole sleep left afterwards, and that is a stall.
        let isAsleep = eventually { readSmallFile("/proc/\(host.pid)/wchan").map { $0.contains("nanosleep") } ?? false }
        try #require(isAsleep)
        let (pid, held, end) = (host.pid, Collected<Bool>(), Pipe())
        let descriptor = end.fileHandleForReading.fileDescriptor
        // Until the answer, after the threshold of 2 s. The rest of the turn is too short for a stall.
        Thread.detachNewThread { held.add(cunwind_test_hold(pid, 300_000, descriptor)) }
        #expect(eventually { host.record?.state == .held })
        let answer = try host.health()
        #expect(answer == .init(2, "cannot tell: a debugger holds a thread: main has not finished a turn in time\n"))
        end.fileHandleForWriting.write(Data([0]))
        #expect(eventually { held.all == [true] })
        #expect(eventually { host.record?.state == .ok })
        host.command("stop")
        #expect(host.finish().lines.last == "stopped stopped 0")
    }

    @Test(arguments: ["abort", "call"]) func `an escalation leaves its sentence`(action: String) throws {
        let host = try HealthHostProcess("recover", action)
        let log = try host.directory.write("termination", String(repeating: "old ", count: 500))
        func text() -> String { AtomicFile.read(log, limit: 1 << 20).map { String(decoding: $0, as: UTF8.self) } ?? "" }
        #expect(host.ready() != nil)
        host.command("hang")
        if action == "call" {
            #expect(host.stalledStatus() != nil)
            // The name of the function comes later.
            #expect(eventually { text().contains(" in ") }, "\(text())")
            host.command("stop")
        }
        let end = host.finish()
        #expect(end.reason == (action == "abort" ? .uncaughtSignal : .exit))
        #expect(end.status == (action == "abort" ? SIGABRT : 0))
        #expect(end.lines.contains("escalated") == (action == "call"))
        let lines = text().split(separator: "\n")
        #expect(lines.first?.hasPrefix("main stalled and has not come back after ") == true, "\(lines)")
        #expect(lines.first?.contains(" in ") == true, "\(lines)")
        let name = try #require(lines.last?.dropFirst("report: ".count))
        #expect(FileManager.default.fileExists(atPath: host.directory.path("stalls/\(name)")), "\(lines)")
        #expect(!text().contains("old"))
    }
}

extension TemporaryDirectory {
    fileprivate static func reportCount(_ path: String) -> Int {
        (directoryEntries(path) ?? []).count { StallReport.isFileName($0.name) }
    }
}

/// A service of the test host, with its health file and the messages that it sends to its service manager; it ends with
/// this object at the latest.
final class HealthHostProcess {
    /// What the manager expects: a `WATCHDOG=1` every 400 ms at most, so one is sent every 200 ms.
    static let limitMicroseconds = 400_000

    let directory: TemporaryDirectory
    let manager: DatagramReceiver
    private let host: TestHost
    private let commands = Pipe()
    private let errors = Pipe()

    /// Starts the service; `words` say how it hangs, and how it escalates.
    init(_ words: String..., environment: [String: String] = [:], isHeard: Bool = true) throws {
        if !isHeard { try errors.fileHandleForReading.close() }
        directory = try TemporaryDirectory()
        manager = try DatagramReceiver(isAbstract: false)
        host = try TestHost(
            ["health", directory.path] + words,
            environment: [
                "NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "\(Self.limitMicroseconds)", "WATCHDOG_PID": nil,
                "SYSTEMD_EXEC_PID": nil,
            ].merging(environment.mapValues { $0 }) { $1 }, input: commands, errors: errors)
    }

    var pid: Int32 { host.pid }

    /// What the service has written to standard error, once it has ended.
    var errorText: String { String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) }

    func command(_ line: String) { commands.fileHandleForWriting.write(Data((line + "\n").utf8)) }

    /// Makes the main thread hang, and takes what was sent before: a busy machine may delay an earlier turn.
    func hang() {
        command("hang")
        _ = host.lines(until: "hangs")
        _ = messages(milliseconds: 0)
    }

    /// Waits for the end of the service, and returns its output's lines and how it ended.
    func finish() -> (lines: [String], status: Int32, reason: Process.TerminationReason) {
        (host.finish(), host.process.terminationStatus, host.process.terminationReason)
    }

    /// Waits until the service is ready, and returns its first message; `nil` if it is not ready in time.
    func ready() -> String? { message { $0.contains("READY=1") } }

    /// Waits for a message, and returns it; `nil` if it does not come in time.
    func message(_ isWanted: (String) -> Bool) -> String? {
        let deadline = endOfPatience
        while let message = manager.next(until: deadline) {
            if isWanted(message) { return message }
        }
        return nil
    }

    /// Waits until the service is fed so often, and returns whether it was; adds all messages to `messages`.
    func isFed(_ count: Int, _ messages: inout [String]) -> Bool {
        var left = count
        let last = message { message in
            messages.append(message)
            left -= Self.feeds([message])
            return left == 0
        }
        return last != nil
    }

    func isFed(_ count: Int) -> Bool {
        var messages: [String] = []
        return isFed(count, &messages)
    }

    func messages(milliseconds: UInt64) -> [String] { manager.all(until: monotonicNow() + milliseconds * 1_000_000) }

    /// Waits for the status of a stall that goes on.
    func stalledStatus(_ isWanted: (String) -> Bool = { _ in true }) -> String? {
        message { status($0).map { $0.contains("has not come back") && isWanted($0) } ?? false }.flatMap(status)
    }

    func status(_ message: String) -> String? {
        message.split(separator: "\n").first { $0.hasPrefix("STATUS=") }.map { String($0.dropFirst(7)) }
    }

    var healthPath: String { directory.path("health") }

    var record: HealthRecord? {
        AtomicFile.read(healthPath, limit: HealthRecord.maximumBytes).flatMap { HealthRecord(jsonData: $0) }
    }

    /// The modification time of the health file, in nanoseconds since 1970.
    var changedAt: Int? { FileStatus(path: healthPath)?.changedAt }

    struct Answer: Equatable {
        var status: Int32
        var text: String

        init(_ status: Int32, _ text: String) {
            self.status = status
            self.text = text
        }
    }

    func health(byFile: Bool = false) throws -> Answer {
        let target = byFile ? healthPath : "\(pid)"
        let result = try Command(program: Command.product("stallwatch"), arguments: ["health", target]).run()
        return Answer(result.status, result.text)
    }

    /// Waits until the process is healthy by its file, which has a thread of its own; what leads there from the process
    /// is made after the first record.
    func becomesHealthy() -> Bool { eventually(every: 100) { (try? health())?.status == 0 } }

    static func feeds(_ messages: [String]) -> Int {
        messages.count { $0.split(separator: "\n").contains("WATCHDOG=1") }
    }
}
