import Foundation
import Glibc
import LinuxSupport
import TestSupport
import Testing

@testable import StallReports
@testable import StallWatchCLI

/// `stallwatch health` in a process of its own: the whole output and the exit status.
@Suite struct HealthCommandTests {
    private let directory = TemporaryDirectory.ofTest()

    /// A record of this process, which the tool can see.
    private func record(
        _ state: HealthState, agedMilliseconds age: UInt64 = 0, change: (inout HealthRecord) -> Void = { _ in }
    ) throws -> HealthRecord {
        let own = try #require(ProcessIdentity.current())
        let time = Timestamp(wallClockNanoseconds: wallClockNow())
        var record = HealthRecord(
            state: state, checkedAt: time, checkedAtMonotonicMilliseconds: monotonicNow() / 1_000_000 - age,
            progressedAt: time, intervalMilliseconds: 600_000,
            process: .init(
                pid: own.pid, startTicks: own.startTicks, bootID: own.bootID,
                pidNamespace: readLink("/proc/self/ns/pid")),
            loops: [.init(label: "main", state: state == .stalled ? .stalled : .running, since: time)],
            stall: state == .stalled
                ? .init(sentence: "main stalled and has not come back after 812 ms in f()", isOngoing: true) : nil)
        change(&record)
        return record
    }

    private func health(_ record: HealthRecord, _ options: [String] = []) throws -> Command.Output {
        let path = try directory.write("health", record.jsonData())
        return try Tool.run(["health", path] + options)
    }

    private func expect(
        _ result: Command.Output, _ status: Int32, _ output: String = "", errors: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(result.output == output, sourceLocation: sourceLocation)
        #expect(result.errors == errors, sourceLocation: sourceLocation)
        #expect(result.status == status, sourceLocation: sourceLocation)
    }

    @Test func `a record that is not replaced has status 1`() throws {
        let old = try record(.ok, agedMilliseconds: 60_000) { $0.intervalMilliseconds = 1_000 }
        let begun = monotonicNow()
        let result = try health(old)
        #expect(monotonicNow() - begun >= 1_000_000_000, "it had the time to be replaced")
        #expect(result.output.hasPrefix("stuck: the monitor of process \(getpid()) has not looked for 1 min "))
        #expect(result.status == 1 && result.errors == "", "\(result)")
    }

    @Test func `a proof is a line of its own`() throws {
        let proved = try record(.ok) { $0.proof = HealthRecord.Proof(MonitorProof(obstacle: "the monitor is paused")) }
        expect(try health(proved), 0, "ok: 1 loop makes progress\nproof: the monitor is paused\n")
    }

    @Test func `a process that wakes up has the time to write`() throws {
        let old = try record(.ok, agedMilliseconds: 60_000) { $0.intervalMilliseconds = 1_000 }
        let fresh = try record(.ok)
        let path = try directory.write("health", old.jsonData())
        Thread.detachNewThread { [directory] in
            usleep(300_000)
            _ = try? directory.write("health", fresh.jsonData())
        }
        expect(try Tool.run(["health", path]), 0, "ok: 1 loop makes progress\n")
    }

    @Test func `a record of an earlier process has status 2`() throws {
        let text = "cannot tell: process \(getpid()), which wrote the record, has ended: start the program again\n"
        expect(try health(record(.ok) { $0.process.startTicks = 1 }), 2, text)
        expect(try health(record(.ok) { $0.process.bootID = "earlier" }), 2, text)
        // A file that hosts share.
        let other = try HealthVerdict.Process.of(
            record(.ok) { ($0.process.bootID, $0.process.hostname) = ("earlier", "another-host") }, at: .file("health"))
        #expect(other == .otherHost)
        // In a container of LXC or systemd-nspawn.
        let inside = try HealthVerdict.Process.of(
            record(.ok) { ($0.process.bootID, $0.process.hostname) = ("its-own", "container") },
            at: .process(getpid()))
        #expect(inside == .running)
    }

    @Test func `a record of another container is judged by its age`() throws {
        expect(
            try health(
                record(.ok) {
                    $0.process.pidNamespace = "pid:[1]"; $0.process.pid = 1
                }), 0,
            "ok: 1 loop makes progress\n")
    }

    @Test func `a file that is no record has status 2`() throws {
        let missing = directory.path("missing")
        expect(
            try Tool.run(["health", missing]), 2,
            errors:
                "Error: \(missing) cannot be read: No such file or directory. Give the path that the program sets in "
                + "health, and start the program first.\n")
        let other = try directory.write("other", "{}")
        expect(
            try Tool.run(["health", other]), 2,
            errors:
                "Error: \(other) is no health record of this version. Give the path that the program sets in health.\n")
        expect(
            try Tool.run(["health", directory.path]), 2,
            errors:
                "Error: \(directory.path) cannot be read: it is not a regular file. Give the path that the program sets in "
                + "health.\n")
    }

    @Test func `a process without a monitor has status 2`() throws {
        let process = Command(program: "/bin/sleep", arguments: ["60"]).process()
        try process.run(atMost: 60)
        let pid = process.processIdentifier
        expect(
            try Tool.run(["health", "\(pid)"]), 2,
            errors:
                "Error: Process \(pid) is not monitored: no watchdog runs in it. Start a StallMonitor in the program.\n"
        )
        process.kill()
        process.waitUntilExit()
        expect(try Tool.run(["health", "\(pid)"]), 2, errors: "Error: There is no process \(pid).\n")
    }

    @Test func `a process that hides its files may write one`() {
        let sentence = HealthTarget.noFile(4_700, showsFiles: false).sentence
        #expect(
            sentence
                == "Process 4700 does not show its open files: run the tool as root, or give the health file's path."
        )
    }

    @Test func `JSON has the verdict and the record`() throws {
        struct Answer: Decodable {
            let status: Int32
            let sentence: String
            let record: HealthRecord
        }
        let record = try record(.stalled)
        let result = try health(record, ["--json"])
        let answer = try JSONDecoder().decode(Answer.self, from: Data(result.output.utf8))
        #expect(answer.status == 1)
        #expect(answer.sentence == record.summary)
        #expect(answer.record == record)
        #expect(result.status == 1)
    }

    @Test func `an empty path is a wrong command line`() throws {
        let result = try Tool.run(["health", ""])
        #expect(result.errors.hasPrefix("Error: The path is empty: give a process id or a health file.\n"))
        #expect(result.status == 2)
    }

    @Test func `control characters in a label are not printed`() throws {
        let hostile = try record(.stalled) { $0.stall?.sentence = "\u{1b}]0;x\nmain stalled" }
        let result = try health(hostile)
        #expect(!result.output.contains("\u{1b}"))
        #expect(result.output.split(separator: "\n").count == 1)
    }
}

/// Judgements about records, without processes and files.
@Suite struct HealthVerdictTests {
    private func record(
        _ state: HealthState, interval: Double? = 1_000, checkedAt: UInt64 = 100_000
    ) -> HealthRecord {
        let time = Timestamp(microsecondsSince1970: 0)
        return HealthRecord(
            state: state, checkedAt: time, checkedAtMonotonicMilliseconds: checkedAt, progressedAt: time,
            intervalMilliseconds: interval, process: .init(pid: 4_700),
            loops: [.init(label: "main", state: state == .stalled ? .stalled : .running, since: time)],
            stall: state == .stalled ? .init(sentence: "main stalled", isOngoing: true) : nil)
    }

    private struct Judged: Equatable {
        var status: Int32
        var sentence: String

        init(_ status: Int32, _ sentence: String) {
            self.status = status
            self.sentence = sentence
        }
    }

    private func verdict(
        _ record: HealthRecord, at now: UInt64 = 100_500, _ process: HealthVerdict.Process = .running
    ) -> Judged {
        let verdict = HealthVerdict(record, at: now, process)
        return Judged(verdict.status.rawValue, verdict.sentence)
    }

    @Test(
        arguments: [
            (.ok, 0, "1 loop makes progress"), (.stalled, 1, "main stalled"),
            (.starting, 2, "a loop has not begun the first turn"),
            (.held, 2, "a debugger holds a thread: a loop has not finished a turn in time"),
            (.stopped, 2, "no monitor runs: the program has stopped it, or has not started it"),
            (.init(rawValue: "new"), 2, "the state is \"new\", which this version does not know"),
        ] as [(HealthState, Int32, String)])
    func `a fresh record is believed`(state: HealthState, status: Int32, sentence: String) {
        #expect(verdict(record(state)) == Judged(status, sentence))
        #expect(verdict(record(state), .hidden) == Judged(status, sentence))
    }

    @Test func `a record is out of date after three intervals and two seconds`() {
        #expect(verdict(record(.ok), at: 105_000).status == 0)
        #expect(
            verdict(record(.ok), at: 105_001)
                == Judged(
                    1,
                    "the monitor of process 4700 has not looked for 5.00 s: "
                        + "the process does not run, or its watchdog or its disk is stuck"
                ))
        #expect(verdict(record(.ok, interval: 200), at: 102_600).status == 0)
        #expect(verdict(record(.ok, interval: 200), at: 102_601).status == 1)
        #expect(verdict(record(.starting), at: 200_000).status == 1)
        #expect(verdict(record(.stopped), at: 200_000).status == 2, "a monitor that was stopped is not stuck")
    }

    /// The monotonic clocks of two machines have nothing in common.
    @Test func `a record of another machine is judged by the wall clock`() {
        func status(_ state: HealthState, checkedAt: UInt64, wallSeconds: Int64) -> Int32 {
            HealthVerdict(
                record(state, checkedAt: checkedAt), at: 100_500, .otherHost,
                wall: Timestamp(microsecondsSince1970: wallSeconds * 1_000_000)
            ).status.rawValue
        }
        #expect(status(.ok, checkedAt: .max / 2, wallSeconds: 86_400) == 2)
        #expect(status(.ok, checkedAt: 100_000, wallSeconds: -60) == 2)
        #expect(status(.stalled, checkedAt: 100_000, wallSeconds: 86_400) == 2)
        #expect(status(.ok, checkedAt: 1, wallSeconds: 4) == 0, "it is fresh")
        #expect(status(.stalled, checkedAt: 1, wallSeconds: 4) == 1)
    }

    /// A pod's folder outlives its containers.
    @Test func `a record may be older than the container`() {
        let now = ClockPair(monotonic: { 101_000_000_000 }, boot: { 500_000_000_000 })
        let second: UInt64 = 1_000_000_000
        #expect(HealthVerdict.Process.isOlder(record(.ok), than: 500 * second, now: now))
        #expect(!HealthVerdict.Process.isOlder(record(.ok), than: 498 * second, now: now))
        #expect(!HealthVerdict.Process.isOlder(record(.ok, checkedAt: .max), than: 600 * second, now: now))
    }

    @Test func `a record of the future is fresh`() {
        #expect(verdict(record(.ok), at: 99_999).status == 0)
    }

    @Test(
        arguments: [
            (.ended, "process 4700, which wrote the record, has ended: start the program again"),
            (.paused(.signal), "process 4700 is stopped by a signal: continue it with kill -CONT 4700"),
            (.paused(.debugger), "process 4700 is stopped by a debugger: let it continue"),
            (.paused(.frozen), "process 4700 is frozen with its cgroup: thaw the cgroup, or unpause the container"),
            (.before, "the record is older than this container, whose program may not have started yet"),
            (
                .other(12),
                "another process has written the health file of process 12: give each program a file of its own"
            ),
        ] as [(HealthVerdict.Process, String)])
    func `a process that does not run is neither healthy nor stuck`(process: HealthVerdict.Process, sentence: String) {
        for state in [HealthState.ok, .stalled, .starting] {
            #expect(verdict(record(state), process) == Judged(2, sentence))
            #expect(verdict(record(state), at: 900_000, process) == Judged(2, sentence))
        }
    }

    @Test(
        arguments: [
            ("4700", .process(4_700)), ("./4700", .file("./4700")), ("-1", .file("-1")), ("", .file("")),
            ("/run/notes/health", .file("/run/notes/health")), ("99999999999", .file("99999999999")),
            ("12a", .file("12a")), ("١٢", .file("١٢")),
        ] as [(String, HealthTarget)])
    func `digits are a process`(argument: String, target: HealthTarget) {
        #expect(HealthTarget(argument) == target)
    }
}
