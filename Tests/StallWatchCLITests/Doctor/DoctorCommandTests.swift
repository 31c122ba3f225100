import Foundation
import Glibc
import Testing
import TestSupport
import TextOutput

@testable import StallReports
@testable import StallWatchCLI

@Suite struct DiagnosisTests {
    private static let environment = Capabilities.Environment(
        pid: 4700, userID: 1000, kernel: "6.1.0-18-amd64", architecture: "x86_64", seccompMode: 2,
        hasNoNewPrivileges: true, yamaScope: 1, securityLabel: "docker-default (enforce)", isDumpable: true,
        maySysPtrace: false, perfEventParanoid: 3
    )

    private func text(_ diagnosis: Diagnosis, width: Int? = nil) -> String {
        diagnosis.text(for: Terminal(width: width))
    }

    private func diagnosis(
        _ outcomes: [Capabilities.FeatureName: Capabilities.Outcome], source: Diagnosis.Source = .monitor
    ) -> Diagnosis {
        Diagnosis(
            capabilities: Capabilities(Self.environment, outcomes), source: source,
            process: .init(
                pid: 4700, executable: "/usr/bin/notes", isMonitored: true, hasStallWatch: true,
                reportDirectory: "/var/lib/notes/stalls"
            )
        )
    }

    @Test func `an issue has the system in a table, and what was found`() {
        var system = SystemDescription(release: "NAME=x\nPRETTY_NAME=\"A|B [x](https://e.example)\"\n")
        (system.library, system.processors) = ("glibc 2.41", 8)
        let lines = system.markdown(diagnosis([.read: .works()])).split(
            separator: "\n", omittingEmptySubsequences: false)
        #expect(
            lines.prefix(6) == [
                "| system | |", "| --- | --- |", "| distribution | A\\|B \\[x\\](https:\\//e.example) |",
                "| C library | glibc 2.41 |",
                "| kernel | Linux 6.1.0-18-amd64 x86\\_64 |", "| processors | 8 |",
            ])
        #expect(lines.contains("Works: capture by reading /proc") && lines.suffix(2) == ["```", ""])
        #expect(SystemDescription(release: nil).distribution == "unknown")
    }

    @Test func `costs are shown so far and for an hour`() {
        var cost = MonitorCost()
        (cost.seconds, cost.cpuSeconds, cost.processCPUSeconds) = (1_800, 1.5, 90)
        (cost.threads, cost.wakeUps, cost.openFiles) = (4, 900, 1)
        (cost.holds, cost.heldMicroseconds, cost.longestHoldMicroseconds) = (40, 2_000, 90)
        var diagnosis = diagnosis([.read: .works()])
        diagnosis.cost = cost
        #expect(
            text(diagnosis).contains(
                """

                Cost in 30 min 0 s: 1.50 s (3.00 s an hour) of CPU, of 1 min 30 s of the process since its start; \
                900 (1800 an hour) wake-ups; \
                40 (80 an hour) holds of a thread, 2 ms (4 ms an hour) in all, the longest 0.090 ms; now 4 threads and 1 open file of threads in /proc

                """))
        diagnosis.cost?.seconds = 0
        #expect(text(diagnosis).contains("\nCost in 0 ms: 1.50 s of CPU, "))
    }

    @Test func `a proof is a line for each stall, after the conclusion`() {
        var sleep = MonitorProof.Trial(.sleep)
        (sleep.delayMilliseconds, sleep.method) = (0.614, .read)
        var proof = MonitorProof()
        proof.trials = [sleep] + [MonitorProof.Kind.lock, .cpu, .pipe].map { MonitorProof.Trial($0) }
        proof.cpuMilliseconds = 12
        var diagnosis = diagnosis([.read: .works()])
        diagnosis.proof = proof
        #expect(
            text(diagnosis).hasSuffix(
                """

                Proved by stalls of the monitor's own, with 12 ms of CPU:
                    sleep: right, 0.6 ms after the threshold, captured by read
                    lock: right
                    cpu: right
                    pipe: right

                """))
        diagnosis.proof?.trials[3] = MonitorProof.Trial(.pipe, fault: "there is no report")
        diagnosis.proof?.faults = ["/reports is full"]
        let end = "    cpu: right\n    pipe: there is no report\n    /reports is full\n"
        #expect(text(diagnosis).contains("\nNot proved by ") && text(diagnosis).hasSuffix(end))
    }

    @Test func `a quota below one CPU is a warning`() {
        let line = "Process 4700 has a quota of 20 % of a CPU: a proof may take ten seconds.\n"
        #expect(Diagnosis.warning(ofQuota: 0.2, of: 4700) == line)
        #expect([Double?.none, 1, 1.5].compactMap { Diagnosis.warning(ofQuota: $0, of: 4700) } == [])
    }

    @Test func `works, losses and remedies are listed`() {
        var outcomes = Dictionary(
            uniqueKeysWithValues: Capabilities.FeatureName.known.map { ($0, Capabilities.Outcome.notTried("not here")) }
        )
        outcomes[.read] = .works()
        outcomes[.signal] = .works()
        outcomes[.libdw] = .works("installed; loaded for the first report")
        outcomes[.flush] = .missing("/reports: fsync: Operation not permitted")
        outcomes[.pressure] = .missing()
        #expect(
            text(diagnosis(outcomes)) == """
                StallWatch \(StallWatchVersion.current), as the monitor in process 4700 finds it
                Executable: /usr/bin/notes
                Reports: /var/lib/notes/stalls
                System: Linux 6.1.0-18-amd64 x86_64, user 1000, a seccomp filter, Yama 1, confined by docker-default (enforce), \
                dumpable, no new privileges, perf_event_paranoid 3

                Works: capture by reading /proc, capture by signal, libdw (installed; loaded for the first report)

                Missing, optional: /proc/pressure
                    lost: causes have no pressure
                    set:  systemd: no ProcSubset=pid
                    set:  a kernel with CONFIG_PSI and psi=1, for the pressure

                Missing: flush to the disk (/reports: fsync: Operation not permitted)
                    lost: a power failure may lose the newest reports
                    set:  put the report directory on a file system that supports fsync, such as a volume

                Not tried (not here): capture by ptrace, process_vm_readv, /proc/…/syscall, \
                /proc/…/wchan, /proc/…/schedstat, /proc/…/stat, /proc/…/status, /proc/…/stack, cgroup CPU statistics, CPU steal, \
                files of page faults, boot id, symbols of the executable, debug information of the executable, contexts of threads, \
                threads of the task pool, libunwind

                Reports lack something here: see the lines above.

                """
        )
    }

    @Test(arguments: [40, 80, 120]) func `no line is wider than the terminal`(width: Int) {
        let outcomes = Dictionary(
            uniqueKeysWithValues: Capabilities.FeatureName.known.map {
                ($0, Capabilities.Outcome.missing("Operation not permitted"))
            }
        )
        let lines = text(diagnosis(outcomes), width: width).split(separator: "\n")
        #expect(lines.allSatisfy { String($0).columns <= width })
    }

    @Test func `the conclusion follows from the missing features`() {
        #expect(text(diagnosis([.read: .works()])).hasSuffix("\nReports lack nothing here.\n"))
        let partial = text(diagnosis([.steal: .missing()]))
        #expect(partial.hasSuffix("\nReports are whole here; they lack some additions.\n"))
        #expect(text(diagnosis([:], source: .outside)).hasSuffix("\nA process shows little of this to others.\n"))
    }

    @Test func `control characters in a directory's name are not printed`() {
        var diagnosis = diagnosis([.read: .works()])
        diagnosis.process = InspectedProcess(
            pid: 4700, executable: nil, isMonitored: true, hasStallWatch: true, reportDirectory: "/a\u{1b}[31m")
        diagnosis.capabilities.version = "\u{1b}]0;x"
        #expect(!text(diagnosis).contains("\u{1b}"))
    }
}

@Suite struct DoctorTests {
    private func answer(_ text: String) throws -> TestSupport.Tool.Diagnosis {
        try TestSupport.Tool.decode(TestSupport.Tool.Diagnosis.self, text)
    }

    @Test func `the tool tries what a program like it could do`() throws {
        let result = try Tool.run(["doctor", "--json"])
        #expect(result.status == 0 && result.errors == "", "\(result)")
        let answer = try answer(result.output)
        #expect(answer.source == "tool" && answer.process == nil, "\(answer)")
        #expect(answer.capabilities.features.map(\.name) == Capabilities.FeatureName.known)
        #expect(answer.capabilities[.processVMReadv]?.state == .works)
        let ofProgram = [Capabilities.FeatureName.context, .pinnedThreads].map { answer.capabilities[$0]?.detail }
        #expect(ofProgram.allSatisfy { $0?.hasPrefix("the program's own") == true }, "\(ofProgram)")
        let text = try Tool.run(["doctor"])
        let version = StallWatchVersion.current
        #expect(text.output.hasPrefix("StallWatch \(version), in a program that is started like this tool\n"))
        #expect(text.status == 0)
    }

    @Test func `a process is meant by its id, its name or nothing`() throws {
        let two = [(pid: Int32(4700), name: "notes"), (pid: Int32(4801), name: "server")]
        #expect(try InspectedProcess.pid(of: "12", among: { two }) == 12)
        let all = { (_: Int32) in true }
        #expect(try InspectedProcess.pid(of: "server", among: { two }, mayAsk: all) == 4801)
        #expect(try InspectedProcess.pid(of: nil, among: { [two[0]] }) == 4700)
        func failure(_ word: String?, _ processes: [(pid: Int32, name: String)]) -> CommandFailure? {
            do throws(CommandFailure) {
                _ = try InspectedProcess.pid(of: word, among: { processes }, mayAsk: all)
                return nil
            } catch {
                return error
            }
        }
        #expect(failure(nil, []) == CommandFailure(.nothing, "No process has a monitor."))
        #expect(failure("notes", [two[1]]) == CommandFailure(.nothing, "No process named 'notes' has a monitor."))
        let several = "2 processes have a monitor: give one of 4700 (notes), 4801 (server)."
        #expect(failure(nil, two) == CommandFailure(.usage, several))
    }

    @Test func `another user's process is not meant by nothing`() throws {
        let two = [(pid: Int32(4700), name: "a process"), (pid: Int32(4801), name: "server")]
        #expect(try InspectedProcess.pid(of: nil, among: { two }, mayAsk: { $0 == 4801 }) == 4801)
        // If it is the only one, the next step says whose it is.
        #expect(try InspectedProcess.pid(of: nil, among: { [two[0]] }, mayAsk: { _ in false }) == 4700)
        #expect(InspectedProcess.mayAsk(getpid()))
    }

    @Test func `a process whose monitor was stopped is not told to start one`() {
        let process = InspectedProcess(
            pid: 4700, executable: nil, isMonitored: false, hasStallWatch: true, reportDirectory: nil)
        let sentence = "Process 4700 is not monitored: StallWatch is in its executable, but no monitor runs."
        #expect(process.notMonitored == CommandFailure(.nothing, sentence))
    }

    @Test func `a process that has ended is named`() throws {
        let process = Command(program: "/bin/true").process()
        try process.run()
        process.waitUntilExit()
        let result = try Tool.run(["doctor", "\(process.processIdentifier)"])
        #expect(result.errors == "Error: There is no process \(process.processIdentifier).\n")
        #expect(result.status == 1 && result.output == "", "\(result)")
    }

    @Test func `a process without a monitor is named`() throws {
        let process = Command(program: "/bin/sleep", arguments: ["60"]).process()
        try process.run()
        defer { kill(process.processIdentifier, SIGKILL) }
        let result = try Tool.run(["doctor", "\(process.processIdentifier)"])
        #expect(result.errors.hasPrefix("Error: Process \(process.processIdentifier) is not monitored: "))
        #expect(result.errors.split(separator: "\n").count == 1)
        #expect(result.output.hasPrefix("Process \(process.processIdentifier), seen from outside\n"))
        #expect(result.status == 1)
        let json = try Tool.run(["doctor", "--json", "\(process.processIdentifier)"])
        #expect(try answer(json.output).source == "outside")
        #expect(try answer(json.output).process?.isMonitored == false)
        #expect(json.status == 1)
    }

    @Test func `a thread id is not taken for a process id`() throws {
        let thread = try #require(
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").compactMap(Int32.init).first {
                $0 != getpid()
            })
        let result = try Tool.run(["doctor", "\(thread)"])
        #expect(
            result.errors == "Error: \(thread) is a thread of process \(getpid()): give the id of the process.\n"
                || result.errors == "Error: There is no process \(thread).\n", "the thread may have ended")
        #expect(result.status == 1)
    }

    @Test(.enabled(if: geteuid() == 0 && Command.find("setpriv") != nil, "needs root and setpriv(1)"))
    func `another user's process is named`() throws {
        // A copy, because the build's directory may be closed to other users.
        let scratch = try TemporaryDirectory()
        let copy = try scratch.program("stallwatch", from: Command.product("stallwatch"))
        chmod(scratch.path, 0o755)
        let result = try Command(
            program: try #require(Command.find("setpriv")),
            arguments: ["--reuid=65534", "--clear-groups", copy, "doctor", "\(getpid())"]
        ).run()
        #expect(
            result.errors == "Error: Process \(getpid()) belongs to user 0: run the tool as that user or as root.\n")
        #expect(result.status == 77 && result.output == "", "\(result)")
    }
}
