import Testing
import TextOutput

@testable import StallReports
@testable import StallWatchCLI

@Suite struct DiagnosisTextTests {
    private static let environment = Capabilities.Environment(
        pid: 4700, userID: 1000, kernel: "6.1.0-18-amd64", architecture: "x86_64", seccompMode: 2,
        hasNoNewPrivileges: true, yamaScope: 1, securityLabel: "docker-default (enforce)", isDumpable: true,
        maySysPtrace: false, perfEventParanoid: 3
    )

    private func text(_ diagnosis: Diagnosis, width: Int? = nil) -> String {
        DiagnosisText(diagnosis).text(for: Terminal(width: width))
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
                StallWatch 0.1.0, as the monitor in process 4700 found at its start
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

                Not tried (not here): capture by ptrace, capture by perf event, process_vm_readv, /proc/…/syscall, \
                /proc/…/wchan, /proc/…/schedstat, /proc/…/stat, /proc/…/status, /proc/…/stack, cgroup CPU statistics, CPU steal, \
                files of page faults, boot id, symbols of the executable, debug information of the executable, contexts of threads

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
        #expect(
            text(diagnosis([.perf: .missing()])).hasSuffix("\nReports are whole here; they lack some additions.\n"))
        #expect(
            text(diagnosis([:], source: .outside)).hasSuffix("\nA process shows little of this to others.\n"))
    }

    @Test func `control characters in a directory's name are not printed`() {
        var diagnosis = diagnosis([.read: .works()])
        diagnosis.process?.reportDirectory = "/a\u{1b}[31m"
        diagnosis.capabilities.version = "\u{1b}]0;x"
        #expect(!text(diagnosis).contains("\u{1b}"))
    }
}
