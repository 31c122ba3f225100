import LinuxSupport
import Testing

@testable import StallReports
@testable import StallWatchCLI

/// Judgements about records, without processes and files.
@Suite struct HealthVerdictTests {
    private func record(
        _ state: HealthRecord.State, interval: Double? = 1_000, checkedAt: UInt64 = 100_000
    ) -> HealthRecord {
        let time = Timestamp(microsecondsSince1970: 0)
        return HealthRecord(
            state: state, checkedAt: time, checkedAtMonotonicMilliseconds: checkedAt, progressedAt: time,
            intervalMilliseconds: interval, process: .init(pid: 4_700),
            loops: [.init(label: "main", state: state == .stalled ? .stalled : .running, since: time)],
            stall: state == .stalled ? .init(sentence: "main stalled", isOngoing: true) : nil)
    }

    /// A verdict with its exit status.
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
        ] as [(HealthRecord.State, Int32, String)])
    func `a fresh record is believed`(state: HealthRecord.State, status: Int32, sentence: String) {
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

    @Test func `a record of the future is fresh`() {
        #expect(verdict(record(.ok), at: 99_999).status == 0)
    }

    @Test(
        arguments: [
            (.ended, "process 4700, which wrote the record, has ended: start the program again"),
            (.paused(.signal), "process 4700 is stopped by a signal: continue it with kill -CONT 4700"),
            (.paused(.debugger), "process 4700 is stopped by a debugger: let it continue"),
            (.paused(.frozen), "process 4700 is frozen with its cgroup: thaw the cgroup, or unpause the container"),
            (
                .other(12),
                "another process has written the health file of process 12: give each program a file of its own"
            ),
        ] as [(HealthVerdict.Process, String)])
    func `a process that does not run is neither healthy nor stuck`(process: HealthVerdict.Process, sentence: String) {
        for state in [HealthRecord.State.ok, .stalled, .starting] {
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
