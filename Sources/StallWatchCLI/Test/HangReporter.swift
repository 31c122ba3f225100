import Glibc
import LinuxSupport
import StallReports
import StallSymbols
import TextOutput

struct HangReporter {
    /// The longest wait for a process to answer, in nanoseconds.
    private static let longestAnswer: UInt64 = 40_000_000_000
    /// The most threads of a process that cannot answer.
    private static let maximumThreads = 64

    let requests: String

    /// `now` is in monotonic nanoseconds; `nil` if this is no hang.
    func text(of run: pid_t, _ progress: TestRun.Progress, into directory: String, at now: UInt64) -> String? {
        let all = RunningProcess.all()
        // The command may be the test process itself.
        let processes = all.filter { $0.id == run } + RunningProcess.descendants(of: run, among: all)
        let offering = processes.filter { access(request(of: $0.id), F_OK) == 0 }
        guard Self.isHang(offering, among: processes, progress, at: bootTimeNow()) else { return nil }
        let quiet = now &- min(progress.clock.lastProgress, now)
        var lines = ["stallwatch: no progress for \(seconds(quiet))"]
        lines += progress.tests.running.map { test in
            "  \(test.name) has not finished after \(seconds(now &- min(test.began, now)))"
        }
        let folder = Self.folder(directory, orElse: requests)
        var hasReport = false
        for process in offering {
            lines.append("Process \(process.id), \(fileName(String(process.command.prefix { $0 != " " }))):")
            do throws(UnreadableReport) {
                let report = try requestReport(process.id, quiet, folder)
                lines += HangText(report).lines.map { "  " + $0 }
                hasReport = true
            } catch {
                lines.append("  no stacks: \(error.reason)")
                lines += threads(of: process.id)
            }
        }
        let others = processes.filter { process in !offering.contains(process) }
        if offering.isEmpty {
            lines.append(
                progress.tests.running.isEmpty
                    ? "The tests that have begun have ended, and the command has not."
                    : "No test process answers: its executable is static, or LD_PRELOAD has no effect on it.")
            for process in others { lines += ["Process \(process.id), \(process.command):"] + threads(of: process.id) }
        } else {
            let children = offering.flatMap { RunningProcess.descendants(of: $0.id, among: processes) }
            for process in others where children.contains(process) {
                lines.append("Child process \(process.id): \(process.command), \(Self.state(process.state))")
            }
            if hasReport {
                lines.append(
                    folder == directory
                        ? "Reports: stallwatch show --all \(directory.shellWord)"
                        : "No report is kept, because \(directory) cannot be written.")
            }
        }
        return lines.map { $0.printable + "\n" }.joined()
    }

    /// Returns the folder of the reports: without one that can be written there would be no stacks.
    static func folder(_ directory: String, orElse other: String) -> String {
        do throws(CommandFailure) {
            try ReportOutput(directory).checkWritable()
            return directory
        } catch {
            return other
        }
    }

    /// Whether a run without progress is a hang: a test runs, or nothing does after the tests.
    ///
    /// What is built before the tests, between or after them is none. Neither are test processes that began less than
    /// the limit ago: they may print nothing, as after a long build. `now` is in nanoseconds of CLOCK_BOOTTIME.
    static func isHang(
        _ offering: [RunningProcess], among all: [RunningProcess], _ progress: TestRun.Progress, at now: UInt64
    ) -> Bool {
        let isOld = offering.contains { now &- min($0.startTicks &* clockTick, now) >= progress.clock.limit }
        if isOld || !progress.tests.running.isEmpty { return true }
        return offering.isEmpty && progress.tests.hasBegun && !all.contains { $0.state == "R" }
    }

    private func request(of process: pid_t) -> String { "\(requests)/ask.\(process)" }

    private func requestReport(_ process: pid_t, _ quiet: UInt64, _ directory: String) throws(UnreadableReport)
        -> StallReport
    {
        let answer = "\(requests)/answer.\(process)"
        unlink(pathBytes(answer))
        let fifo = open(request(of: process), O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        defer { if fifo >= 0 { close(fifo) } }
        guard fifo >= 0, writeAll(Array("\(quiet / 1_000_000) \(directory)\n".utf8), to: fifo) == nil else {
            throw UnreadableReport("the process has just ended")
        }
        let deadline = monotonicNow() &+ Self.longestAnswer
        while access(answer, F_OK) != 0 {
            guard monotonicNow() < deadline else { throw UnreadableReport("the process does not answer") }
            guard Self.hasReader(fifo) else { throw UnreadableReport("the process has just ended") }
            nap()
        }
        let words = firstLine(readSmallFile(answer) ?? "").split(separator: " ", maxSplits: 1)
        guard words.first == "0", words.count == 2 else {
            throw UnreadableReport(words.count == 2 ? String(words[1]) : "the process does not answer")
        }
        do {
            return try StallReport(jsonData: FileReader.contents(of: String(words[1]), limit: 64 << 20))
        } catch {
            throw UnreadableReport("\(words[1]) cannot be read: \(error)")
        }
    }

    /// Whether a process reads from a FIFO that is open for writing.
    static func hasReader(_ fifo: Int32) -> Bool {
        // Without one, poll(2) reports POLLERR, whatever it is asked for.
        var end = pollfd(fd: fifo, events: 0, revents: 0)
        return poll(&end, 1, 0) != 1
    }

    private func threads(of process: pid_t) -> [String] {
        let directory = "/proc/\(process)/task"
        return LinuxSupport.threads(of: "\(process)").prefix(Self.maximumThreads).compactMap { id in
            guard let stat = readSmallFile("\(directory)/\(id)/stat").flatMap(ProcStat.init) else { return nil }
            let name = readSmallFile("\(directory)/\(id)/comm").map { " \"\(firstLine($0))\"" } ?? ""
            let channel = readSmallFile("\(directory)/\(id)/wchan").flatMap(WaitChannel.function(in:))
            let place = channel.map { " in the kernel's \($0)" } ?? ""
            return "  thread \(id)\(name) \(Self.state(stat.letter))\(place)"
        }
    }

    /// The states of proc_pid_stat(5), in words.
    private static func state(_ letter: String) -> String {
        switch letter {
        case "R": "is on a CPU or ready to run"
        case "S", "D", "I": "waits"
        case "T", "t": "is stopped"
        case "Z", "X": "has ended, but its parent has not asked for its status"
        default: "is in state \(letter)"
        }
    }

    private func seconds(_ nanoseconds: UInt64) -> String { (Double(nanoseconds) / 1_000_000).duration }
}
