import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct StallMonitorConfigurationTests {
    @Test func theDefaultsAreAQuarterOfASecondAndTenSeconds() throws {
        let configuration = StallMonitor.Configuration()
        #expect(configuration.threshold == .milliseconds(250))
        #expect(
            try configuration.watchdogOptions()
                == WatchdogOptions(
                    saturationThreshold: 10_000_000_000, modeRule: .init(limit: 1_000_000_000)))
    }

    @Test(
        arguments: [
            (.milliseconds(5), 5_000_000), (.nanoseconds(5_000_001), 5_000_001), (.seconds(1.5), 1_500_000_000),
            (.seconds(24 * 60 * 60), 86_400_000_000_000),
        ] as [(Duration, UInt64)])
    func aThresholdInRangeIsExactToTheNanosecond(duration: Duration, nanoseconds: UInt64) throws {
        #expect(try StallMonitor.Configuration.nanoseconds(duration) == nanoseconds)
    }

    @Test(
        arguments: [
            .zero, .milliseconds(-250), .nanoseconds(4_999_999), .seconds(24 * 60 * 60) + .nanoseconds(1),
            .seconds(Int64.max), .seconds(Int64.min),
        ] as [Duration])
    func theErrorNamesAThresholdOutOfRange(duration: Duration) {
        let error = #expect(throws: StallWatchError.self) {
            try StallMonitor.Configuration.nanoseconds(duration)
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains("\(duration)") == true)
        #expect(error?.message.contains("5 milliseconds to 24 hours") == true)
    }

    @Test(
        arguments: [
            .init(threshold: .fixed(.zero), reports: .none),
            .init(reports: .none, saturationThreshold: .milliseconds(-1)),
        ] as [StallMonitor.Configuration])
    func aMonitorWithAnInvalidThresholdIsRefused(configuration: StallMonitor.Configuration) throws {
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test(arguments: [Duration.zero, .milliseconds(100)])
    func aMonitorWithAnInvalidThresholdCreatesNoDirectory(threshold: Duration) throws {
        let temporary = try TemporaryDirectory()
        let configuration = StallMonitor.Configuration(
            threshold: .fixed(threshold), reports: .directory(temporary.path + "/new"),
            saturationThreshold: threshold == .zero ? nil : .zero
        )
        #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
        #expect(temporary.names.isEmpty)
    }

    @Test func saturationDetectionCanBeTurnedOff() throws {
        #expect(
            try StallMonitor.Configuration(saturationThreshold: nil).watchdogOptions()
                == WatchdogOptions(modeRule: .init(limit: 1_000_000_000)))
    }

    @Test(
        arguments: [
            (HealthOutput(path: ""), "the health file's path is empty: name a file"),
            (
                HealthOutput(path: "health", interval: .milliseconds(99)),
                "the interval of the health file is 0.099 seconds: give a value from 100 milliseconds to 1 hour"
            ),
            (
                HealthOutput(path: "health", interval: .seconds(3_601)),
                "the interval of the health file is \(Duration.seconds(3_601)): give a value from 100 milliseconds to 1 hour"
            ),
            (
                HealthOutput(notifiesSystemd: false),
                "health has neither a path nor notifiesSystemd: set one of them, or set health to nil"
            ),
        ])
    func `a wrong health output is refused`(health: HealthOutput, message: String) {
        var configuration = StallMonitor.Configuration(reports: .none)
        configuration.health = health
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message == message)
    }

    @Test func `a termination log needs an escalation`() throws {
        var configuration = StallMonitor.Configuration(reports: .none)
        configuration.terminationLog = "log"
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
        #expect(error?.message == "a termination log is only written when a stall escalates: set escalation, too")
        configuration.escalation = .abort(after: 5)
        _ = try StallMonitor(configuration)
        configuration.terminationLog = ""
        #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
    }
}
