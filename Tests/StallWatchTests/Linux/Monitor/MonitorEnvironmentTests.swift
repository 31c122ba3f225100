import Glibc
import InMemoryLogging
import Logging
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

/// What `STALLWATCH`, `STALLWATCH_THRESHOLD` and `STALLWATCH_REPORTS` change about a monitor.
@Suite struct MonitorEnvironmentTests {
    private let scratch = TemporaryDirectory.ofTest()

    private func environment(_ variables: [String: String], isSecure: Bool = false) -> MonitorEnvironment {
        MonitorEnvironment(variables, isSecure: isSecure)
    }

    @Test(arguments: [("250ms", Duration.milliseconds(250)), ("1s", .seconds(1)), ("1.5s", .milliseconds(1_500))])
    func `the threshold is that of the variable`(text: String, threshold: Duration) {
        let environment = environment(["STALLWATCH_THRESHOLD": text])
        #expect(environment.applied(to: .init(threshold: .seconds(9))).threshold == threshold)
        #expect(environment.notices == ["STALLWATCH_THRESHOLD: the threshold is \(text)"])
    }

    @Test(arguments: ["soon", "250", "-1s", "4ms", "25h", "1e400s", "nans"])
    func `a wrong threshold is said and ignored`(text: String) throws {
        let environment = environment(["STALLWATCH_THRESHOLD": text])
        #expect(environment.applied(to: .init(threshold: .seconds(9))).threshold == .seconds(9))
        let notice = try #require(environment.notices.first)
        #expect(notice.hasPrefix("STALLWATCH_THRESHOLD is ignored: "), "\(notice)")
    }

    @Test func `the reports go to the directory of the variable`() throws {
        let directory = scratch.path("reports")
        let environment = environment(["STALLWATCH_REPORTS": directory])
        let quota = ReportQuota(reports: 7)
        let changed = environment.applied(
            to: .init(outputs: [.closure { _ in }, .directory("a", quota: quota), .directory("b")]))
        #expect(changed.outputs.map(\.directory) == [nil, directory, "b"])
        guard case .directory(_, let kept) = changed.outputs[1].kind, kept == quota else {
            Issue.record("the quota has changed")
            return
        }
        #expect(environment.applied(to: .init(outputs: [])).outputs.map(\.directory) == [directory])
        #expect(environment.notices == ["STALLWATCH_REPORTS: reports go to \(directory)"])
    }

    @Test func `a directory that cannot be used is said and ignored`() throws {
        let environment = environment(["STALLWATCH_REPORTS": try scratch.write("file", "")])
        #expect(environment.applied(to: .init(outputs: [])).outputs.isEmpty)
        #expect(environment.notices.count == 1)
        #expect(environment.notices.first?.hasPrefix("STALLWATCH_REPORTS is ignored: ") == true)
    }

    @Test func `only the word off turns a monitor off`() {
        #expect(environment(["STALLWATCH": "off", "STALLWATCH_THRESHOLD": "1s"]).isOff)
        for value in ["on", "OFF", "0", " off"] {
            #expect(!environment(["STALLWATCH": value]).isOff)
            #expect(environment(["STALLWATCH": value]).notices == ["STALLWATCH is ignored: '\(value)' is not off"])
        }
    }

    @Test func `empty variables and those of a set-user-ID program do nothing`() {
        let empty = environment(["STALLWATCH": "", "STALLWATCH_THRESHOLD": "", "STALLWATCH_REPORTS": ""])
        #expect(!empty.isOff && empty.threshold == nil && empty.directory == nil && empty.notices.isEmpty)
        let all = ["STALLWATCH": "off", "STALLWATCH_THRESHOLD": "1s", "STALLWATCH_REPORTS": scratch.path("new")]
        let secure = environment(all, isSecure: true)
        #expect(!secure.isOff && secure.threshold == nil && secure.directory == nil && secure.notices.isEmpty)
        #expect(scratch.names.isEmpty)
    }

    @Test func `a monitor that is turned off writes nothing but one line to the log`() throws {
        let log = InMemoryLogHandler()
        let configuration = StallMonitor.Configuration(
            threshold: .milliseconds(5),
            outputs: [.directory(scratch.path("stalls")), .log(Logger(label: "test") { _ in log })])
        let monitor = try StallMonitor(configuration, environment: environment(["STALLWATCH": "off"]))
        let probe = LoopProbe(label: "probe")
        let loop = try monitor.watch(.probe(probe))
        try monitor.start()
        #expect(monitor.checkHealth().state == .off)
        probe.beginTurn()
        usleep(30_000)
        probe.endTurn()
        try loop.setThreshold(.milliseconds(10))
        #expect(throws: StallWatchError.self) { try loop.setThreshold(.zero) }
        loop.stop()
        monitor.stop()
        #expect(monitor.checkHealth().state == .stopped)
        #expect(monitor.statistics.stalls == 0)
        #expect(scratch.names.isEmpty)
        _ = eventually { !log.entries.isEmpty }
        #expect(
            log.entries.map { "\($0.message)" } == [
                "the environment changes this monitor: STALLWATCH=off: stalls are neither watched nor reported"
            ])
    }

    @Test func `directories that are opened later stay those that were named`() throws {
        var configuration = StallMonitor.Configuration(outputs: [])
        configuration.symbols.lookup.debugDirectories = ["debug", "/opt/debug"]
        configuration.control = .socket(directory: "no such directory/run")
        let monitor = try StallMonitor(configuration, environment: .none)
        let kept = try #require(monitor.engine as? LiveEngine).configuration
        let directories = kept.symbols.lookup.debugDirectories + [kept.control?.directory ?? ""]
        #expect(directories.allSatisfy { $0.hasPrefix("/") }, "\(directories)")
        #expect(directories.map(fileName) == ["debug", "debug", "run"] && directories[1] == "/opt/debug")
    }

    @Test func `a monitor has the settings of the environment`() throws {
        let log = InMemoryLogHandler()
        let environment = environment(
            ["STALLWATCH_THRESHOLD": "20ms", "STALLWATCH_REPORTS": scratch.path("stalls"), "STALLWATCH": "on"])
        let monitor = try StallMonitor(
            .init(threshold: .seconds(60), outputs: [.log(Logger(label: "test") { _ in log })]),
            environment: environment)
        let probe = LoopProbe(label: "probe")
        try monitor.watch(.probe(probe))
        try monitor.start()
        #expect(monitor.configuration.threshold == .milliseconds(20))
        func reports() -> Int {
            (directoryEntries(scratch.path("stalls")) ?? []).count { $0.name.hasSuffix(".json") }
        }
        probe.beginTurn()
        #expect(eventually { reports() == 1 })
        probe.endTurn()
        monitor.stop()
        #expect(reports() == 1)
        _ = eventually { log.entries.contains { "\($0.message)".hasPrefix("the environment") } }
        let lines = log.entries.map { "\($0.message)" }.filter { $0.hasPrefix("the environment") }
        #expect(
            lines == [
                "the environment changes this monitor: STALLWATCH is ignored: 'on' is not off; "
                    + "STALLWATCH_THRESHOLD: the threshold is 20ms; "
                    + "STALLWATCH_REPORTS: reports go to \(scratch.path("stalls"))"
            ])
        let start = "stall monitor started: probe over 20ms; reports go to \(scratch.path("stalls"))"
        #expect(log.entries.contains { "\($0.message)" == start && $0.level == .info })
    }
}

extension ReportOutput {
    /// The path of a directory; `nil` for another output.
    fileprivate var directory: String? {
        if case .directory(let path, _) = kind { path } else { nil }
    }
}
