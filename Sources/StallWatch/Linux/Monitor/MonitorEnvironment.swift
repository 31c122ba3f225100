internal import CLinux
import Glibc
import LinuxSupport
package import StallReports
import StallSymbols

/// What environment variables change about a monitor; ``notices`` says which values are ignored (a pure value).
package struct MonitorEnvironment: Sendable {
    /// Whether `STALLWATCH=off` turns the monitor off.
    private(set) var isOff = false
    private(set) var threshold: Duration?
    /// The value of `STALLWATCH_REPORTS`: the path of a directory.
    private(set) var directory: String?
    private(set) var notices: [String] = []

    package static let none = MonitorEnvironment([:], isSecure: false)

    package static var current: MonitorEnvironment {
        var variables: [String: String] = [:]
        for name in ["STALLWATCH", "STALLWATCH_THRESHOLD", "STALLWATCH_REPORTS"] {
            variables[name] = environmentPath(name)
        }
        return MonitorEnvironment(variables, isSecure: getauxval(UInt(AT_SECURE)) != 0)
    }

    /// Reads variables; a process with more privileges than the user who started it (`isSecure`) ignores all.
    init(_ variables: [String: String], isSecure: Bool) {
        let set = isSecure ? [:] : variables.filter { !$0.value.isEmpty }
        if let value = set["STALLWATCH"] {
            isOff = value == "off"
            notices.append(
                isOff
                    ? "STALLWATCH=off: stalls are neither watched nor reported"
                    : "STALLWATCH is ignored: '\(value)' is not off")
        }
        guard !isOff else { return }
        if let value = set["STALLWATCH_THRESHOLD"] { readThreshold(value) }
        if let value = set["STALLWATCH_REPORTS"] {
            do throws(StallWatchError) {
                _ = try FileCreation.inTime { () throws(StallWatchError) in try ReportDirectory(path: value) }
                directory = value
                notices.append("STALLWATCH_REPORTS: reports go to \(value)")
            } catch {
                notices.append("STALLWATCH_REPORTS is ignored: \(error)")
            }
        }
    }

    private mutating func readThreshold(_ value: String) {
        do {
            let duration = try DurationText.duration(value)
            try StallMonitor.Configuration.check(duration)
            threshold = duration
            notices.append("STALLWATCH_THRESHOLD: the threshold is \(value)")
        } catch {
            notices.append("STALLWATCH_THRESHOLD is ignored: \(error)")
        }
    }

    func applied(to configuration: StallMonitor.Configuration) -> StallMonitor.Configuration {
        var configuration = configuration
        if let threshold { configuration.threshold = threshold }
        guard let directory else { return configuration }
        for (index, output) in configuration.outputs.enumerated() {
            guard case .directory(_, let quota) = output.kind else { continue }
            configuration.outputs[index] = .directory(directory, quota: quota)
            return configuration
        }
        configuration.outputs.append(.directory(directory))
        return configuration
    }

    func announce(to reporter: Reporter) {
        guard !notices.isEmpty else { return }
        reporter.announce("the environment changes this monitor: " + notices.joined(separator: "; "))
    }
}

extension StallMonitor {
    package convenience init(
        _ configuration: Configuration, environment: MonitorEnvironment
    ) throws(StallWatchError) {
        try configuration.check()
        let configuration = environment.applied(to: configuration)
        let engine: any MonitorEngine =
            environment.isOff
            ? try IdleEngine.off(configuration, environment) : try LiveEngine(configuration, environment: environment)
        self.init(configuration, engine: engine)
    }
}

extension IdleEngine {
    /// Returns the engine of a monitor that is turned off: it writes to logs, and tells supervisors that it is off.
    static func off(
        _ configuration: StallMonitor.Configuration, _ environment: MonitorEnvironment
    ) throws(StallWatchError) -> IdleEngine {
        var logs = configuration
        logs.outputs = configuration.outputs.filter { if case .log = $0.kind { true } else { false } }
        let reporter = try Reporter(
            settings: .init {
                ReportBuilder(
                    process: .current(), metadata: [:], inApp: InAppSettings(),
                    symbolication: .inProcess(.none, inApp: InAppSettings()))
            },
            sinks: logs.sinks)
        let health = HealthSource(interval: configuration.health?.recordInterval, isOff: true)
        let healthReporter = try configuration.health.map { settings throws(StallWatchError) in
            try HealthReporter(settings, source: health)
        }
        return IdleEngine(health: .off) { () throws(StallWatchError) in
            try reporter.startSinks()
            try healthReporter?.start(reporter) { _ in
                ProgressReading(loops: [], time: monotonicNow(), isPaused: false)
            }
            environment.announce(to: reporter)
        } stopped: {
            healthReporter?.stop()
            reporter.finishSinks()
        }
    }
}
