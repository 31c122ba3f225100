import CUnwindTestSupport
import Foundation
import Glibc
import LinuxSupport
import StallReports
import Testing
import TestSupport

/// What supervisors learn of a real service: by systemd's protocol, from the health file and from the tool.
@Suite(.serialized) struct HealthTests {
    /// The number of feeds in the next seconds; the service is fed every 200 ms.
    private func feeds(_ host: HealthHostProcess, seconds: UInt64) -> Int {
        HealthHostProcess.feeds(host.messages(milliseconds: seconds * 1_000))
    }

    @Test func `a service is ready, fed and stopped`() async throws {
        // The clock decides how many feeds there are.
        let count = try await remeasured(
            { try feedsOfAHealthyService() }, until: { (24...26).contains($0) })
        print("healthy service: \(count) WATCHDOG=1 in 5 s at a limit of 400 ms")
        #expect((24...26).contains(count), "one per half of the limit")
    }

    private func feedsOfAHealthyService() throws -> Int {
        let host = try HealthHostProcess("none")
        let ready = try #require(host.ready())
        #expect(ready.hasPrefix("READY=1\nWATCHDOG=1\n"))
        #expect(ready.hasSuffix("STATUS=1 loop makes progress"))
        let count = feeds(host, seconds: 5)
        #expect(try host.health() == .init(0, "ok: 1 loop makes progress\n"))
        #expect(try host.health(byFile: true) == .init(0, "ok: 1 loop makes progress\n"))
        host.command("stop")
        let last = host.messages(milliseconds: 2_000)
        #expect(last.last?.hasPrefix("STOPPING=1\nSTATUS=no monitor runs") == true)
        let end = host.finish()
        #expect(end.lines == ["runs", "stopped stopped 0"])
        #expect(end.status == 0)
        #expect(host.record?.state == .stopped)
        #expect(try host.health(byFile: true).status == 2)
        return count
    }

    @Test(arguments: ["lock", "spin"]) func `a service that hangs is not fed`(hang: String) throws {
        let host = try HealthHostProcess(hang)
        #expect(host.ready() != nil)
        #expect(feeds(host, seconds: 1) >= 3, "fed until it hangs")
        host.command("hang")
        let status = try #require(host.stalledStatus())
        #expect(status.hasPrefix("main stalled and has not come back after "), "\(status)")
        // The file and the messages are written by threads of their own.
        #expect(eventually { host.record?.state == .stalled })
        let changed = try #require(host.changedAt)
        // Twelve times the limit after which a manager acts.
        let messages = host.messages(milliseconds: 5_000)
        print("\(hang): \(HealthHostProcess.feeds(messages)) WATCHDOG=1 in 5 s of the hang")
        #expect(HealthHostProcess.feeds(messages) == 0)
        #expect(host.changedAt == changed, "the file's age grows")
        let record = try #require(host.record)
        #expect(record.state == .stalled)
        #expect(record.loops.map(\.state) == [.stalled])
        #expect(monotonicNow() / 1_000_000 - record.checkedAtMonotonicMilliseconds < 2_000, "the record itself is new")
        // The function's name comes with a second message.
        let named = ([status] + messages.compactMap(host.status)).last
        #expect(named?.contains(" in ") == true, "\(named ?? "")")
        for byFile in [false, true] {
            let answer = try host.health(byFile: byFile)
            #expect(answer.status == 1)
            #expect(answer.text.hasPrefix("stuck: main stalled and has not come back after "), "\(answer.text)")
        }
    }

    @Test func `a service that goes on is fed again`() throws {
        let host = try HealthHostProcess("recover")
        #expect(host.ready() != nil)
        host.command("hang")
        #expect(host.stalledStatus() != nil)
        // The stall lasts for 1.5 s.
        #expect(HealthHostProcess.feeds(host.messages(milliseconds: 1_000)) == 0)
        let after = host.messages(milliseconds: 3_000)
        #expect(HealthHostProcess.feeds(after) >= 8)
        let status = after.compactMap(host.status).last
        #expect(status?.hasPrefix("1 loop makes progress; last stall: main stalled for 15") == true, "\(status ?? "")")
        #expect(host.record?.state == .ok)
        #expect(host.record?.stall?.isOngoing == false)
        #expect(try host.health().status == 0)
    }

    @Test func `a service that is turned off is fed while it hangs`() throws {
        let host = try HealthHostProcess("recover", environment: ["STALLWATCH": "off", "STALLWATCH_THRESHOLD": "5ms"])
        let ready = try #require(host.ready())
        #expect(ready.hasPrefix("READY=1\nWATCHDOG=1\n"))
        let sentence = "the monitor is turned off by STALLWATCH=off in the environment of the program"
        #expect(ready.hasSuffix("STATUS=\(sentence)"))
        host.command("hang")
        #expect(feeds(host, seconds: 2) >= 8)
        #expect(host.record?.state == .off)
        for byFile in [false, true] { #expect(try host.health(byFile: byFile) == .init(0, "ok: \(sentence)\n")) }
        host.command("stop")
        #expect(host.finish().lines == ["runs", "hangs", "goes on", "stopped stopped 0"])
        #expect(TemporaryDirectory.reportCount(host.directory.path("stalls")) == 0)
        let line =
            "StallWatch: the environment changes this monitor: STALLWATCH=off: stalls are neither watched nor reported"
        #expect(host.errorText.split(separator: "\n").filter { $0.hasPrefix("StallWatch: ") } == [line[...]])
    }

    @Test func `a service that was stopped by a signal is never called dead`() throws {
        let host = try HealthHostProcess("none")
        #expect(host.ready() != nil)
        // Through the process: what leads there to the file is made after the first record.
        #expect(eventually { (try? host.health())?.status == 0 })
        for round in 1...2 {
            kill(host.pid, SIGSTOP)
            #expect(eventually { ProcessPause.of(host.pid) == .signal })
            _ = host.messages(milliseconds: 100)
            // Longer than the three intervals and two seconds after which a record is out of date.
            #expect(feeds(host, seconds: 4) == 0)
            let sentence =
                "cannot tell: process \(host.pid) is stopped by a signal: continue it with kill -CONT \(host.pid)\n"
            for byFile in [false, true] {
                let answer = try host.health(byFile: byFile)
                #expect(answer == .init(2, sentence), "\(answer)")
            }
            kill(host.pid, SIGCONT)
            // Asked at once, while the record is out of date.
            #expect(try host.health() == .init(0, "ok: 1 loop makes progress\n"))
            let after = host.messages(milliseconds: 2_000)
            print("round \(round): \(HealthHostProcess.feeds(after)) WATCHDOG=1 in the 2 s after SIGCONT")
            #expect(HealthHostProcess.feeds(after) >= 7)
            #expect(after.compactMap(host.status) == [], "no message names a stall")
            #expect(host.record?.state == .ok)
        }
        host.command("stop")
        #expect(host.finish().lines == ["runs", "stopped stopped 0"], "no stall was counted")
        #expect(TemporaryDirectory.reportCount(host.directory.path("stalls")) == 0)
    }

    @Test func `a hang lasts through a stop by a signal`() throws {
        let host = try HealthHostProcess("sleep")
        #expect(host.ready() != nil)
        host.command("hang")
        #expect(host.stalledStatus() != nil)
        kill(host.pid, SIGSTOP)
        usleep(3_000_000)
        kill(host.pid, SIGCONT)
        #expect(feeds(host, seconds: 2) == 0)
        #expect(try host.health().status == 1)
    }

    /// A debugger holds the main thread; the watchdog goes on.
    @Test func `a service that a debugger holds is neither healthy nor stuck`() throws {
        let host = try HealthHostProcess("debug")
        #expect(host.ready() != nil)
        host.command("hang")
        // A thread that is held before it sleeps has its whole sleep left afterwards, and that is a stall.
        let isAsleep = eventually { readSmallFile("/proc/\(host.pid)/wchan").map { $0.contains("nanosleep") } ?? false }
        try #require(isAsleep)
        let (pid, held) = (host.pid, Collected<Bool>())
        // Until after the threshold of 2 s. The rest of the turn is too short for a stall.
        Thread.detachNewThread { held.add(cunwind_test_hold(pid, 2_400)) }
        #expect(eventually { host.record?.state == .held })
        let answer = try host.health()
        #expect(answer == .init(2, "cannot tell: a debugger holds a thread: main has not finished a turn in time\n"))
        #expect(eventually { held.all == [true] })
        #expect(eventually { host.record?.state == .ok })
        host.command("stop")
        #expect(host.finish().lines.last == "stopped stopped 0")
    }

    @Test(arguments: ["abort", "call"]) func `an escalation leaves its sentence`(action: String) throws {
        let host = try HealthHostProcess("recover", action)
        let log = try host.directory.write("termination", String(repeating: "old ", count: 500))
        #expect(host.ready() != nil)
        host.command("hang")
        if action == "call" {
            #expect(host.stalledStatus() != nil)
            usleep(2_000_000)
            host.command("stop")
        }
        let end = host.finish()
        #expect(end.reason == (action == "abort" ? .uncaughtSignal : .exit))
        #expect(end.status == (action == "abort" ? SIGABRT : 0))
        #expect(end.lines.contains("escalated") == (action == "call"))
        let text = String(decoding: try #require(AtomicFile.read(log, limit: 1 << 20)), as: UTF8.self)
        let lines = text.split(separator: "\n")
        #expect(lines.first?.hasPrefix("main stalled and has not come back after ") == true, "\(text)")
        #expect(lines.first?.contains(" in ") == true, "\(text)")
        let name = try #require(lines.last?.dropFirst("report: ".count))
        #expect(FileManager.default.fileExists(atPath: host.directory.path("stalls/\(name)")), "\(text)")
        #expect(!text.contains("old"))
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
    private let process: Process
    private let commands = Pipe()
    private let output = Pipe()
    private let errors = Pipe()

    /// Starts the service; `words` say how it hangs, and how it escalates.
    init(_ words: String..., environment: [String: String] = [:]) throws {
        directory = try TemporaryDirectory()
        manager = try DatagramReceiver(isAbstract: false)
        process = Command(
            program: try Command.product("stallwatch-test-host"), arguments: ["health", directory.path] + words,
            environment: [
                "NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "\(Self.limitMicroseconds)", "WATCHDOG_PID": nil,
                "SWIFT_BACKTRACE": "enable=no",
            ].merging(environment.mapValues { $0 }) { $1 }
        ).process()
        process.standardError = errors
        process.standardInput = commands
        process.standardOutput = output
        try process.run(atMost: Process.timeout)
    }

    deinit { process.kill() }

    var pid: Int32 { process.processIdentifier }

    /// What the service has written to standard error, once it has ended.
    var errorText: String { String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) }

    func command(_ line: String) { commands.fileHandleForWriting.write(Data((line + "\n").utf8)) }

    /// Waits for the end of the service, and returns its output's lines and how it ended.
    func finish() -> (lines: [String], status: Int32, reason: Process.TerminationReason) {
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
        return (lines, process.terminationStatus, process.terminationReason)
    }

    /// Waits until the service is ready, and returns its first message; `nil` if it is not ready within 20 s.
    func ready() -> String? {
        let deadline = monotonicNow() + 20_000_000_000
        while let message = manager.next(until: deadline) {
            if message.contains("READY=1") { return message }
        }
        return nil
    }

    func messages(milliseconds: UInt64) -> [String] { manager.all(until: monotonicNow() + milliseconds * 1_000_000) }

    func stalledStatus() -> String? {
        let deadline = monotonicNow() + 20_000_000_000
        while let message = manager.next(until: deadline) {
            if let status = status(message), status.contains("has not come back") { return status }
        }
        return nil
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

    static func feeds(_ messages: [String]) -> Int {
        messages.count { $0.split(separator: "\n").contains("WATCHDOG=1") }
    }
}
