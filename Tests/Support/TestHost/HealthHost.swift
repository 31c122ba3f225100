import CoreFoundation
import Dispatch
import Foundation
import Glibc
import StallWatch

/// A service whose main run loop turns every 20 ms, until it hangs on request.
///
/// The threshold is 100 ms, or 2 s where it must not stall. It writes the health file `DIRECTORY/health` every 200 ms, and
/// reports to `DIRECTORY/stalls`. With a second word it escalates after 5 thresholds, and writes `DIRECTORY/termination`.
/// Each line of standard input is a command: `hang` makes the main thread hang in the given way, `go on` ends it; `stop`
/// stops the monitor and ends the program. The program prints what it does.
struct HealthHost {
    private enum Hang: String {
        case none, lock, spin, sleep
        /// Waits for the command to go on, for ten minutes at most.
        case recover
        /// Sleeps for 2.5 s, at a threshold of 2 s: time for a debugger.
        case debug
    }

    private static let mayGoOn = DispatchSemaphore(value: 0)
    private static let longestWait = 600.0

    private let directory: String
    private let hang: Hang
    private let escalation: StallMonitor.Configuration.Escalation?

    init(_ arguments: ArraySlice<String>) {
        let words = Array(arguments)
        guard words.count >= 2, let hang = Hang(rawValue: words[1]) else { exit(64) }
        directory = words[0]
        self.hang = hang
        switch words.dropFirst(2).first {
        case "abort": escalation = .abort(afterThresholds: 5)
        case "call": escalation = .call(afterThresholds: 5) { _ in tell("escalated") }
        default: escalation = nil
        }
    }

    func run() throws {
        forbidCoreDumps()
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(hang == .debug || hang == .none ? 2_000 : 100),
            outputs: [.directory(directory + "/stalls")])
        configuration.health = .init(path: directory + "/health", interval: .milliseconds(200))
        configuration.escalation = escalation
        if escalation != nil { configuration.outputs.append(.terminationLog(directory + "/termination")) }
        let monitor = try StallMonitor.ofMainRunLoop(configuration)
        let timer = Timer(timeInterval: 0.02, repeats: true) { _ in }
        RunLoop.main.add(timer, forMode: .default)
        Deadlock.startThread("commands") { [hang, directory] in
            while let line = readLine() {
                if line == "stop" {
                    monitor.stop()
                    Self.waitForLastRecord(in: directory)
                    tell("stopped \(monitor.checkHealth().state.rawValue) \(monitor.statistics.stalls)")
                    exit(0)
                }
                if line == "go on" {
                    Self.mayGoOn.signal()
                    continue
                }
                RunLoop.main.perform {
                    tell("hangs")
                    Self.hang(hang)
                    tell("goes on")
                }
                // Another thread wakes the loop.
                CFRunLoopWakeUp(CFRunLoopGetMain())
            }
        }
        tell("runs")
        RunLoop.main.run()
    }

    /// Waits for the thread that writes the health file, for which `stop()` waits a second, for 10 s at most.
    private static func waitForLastRecord(in directory: String) {
        let deadline = now() + 10_000_000_000
        while now() < deadline {
            let record = FileManager.default.contents(atPath: directory + "/health").map { [UInt8]($0) }
            if record.flatMap({ HealthRecord(jsonData: $0) })?.state == .stopped { return }
            usleep(5_000)
        }
    }

    private static func hang(_ hang: Hang) {
        switch hang {
        case .none: break
        // In this turn already.
        case .lock: Deadlock.enter { $0() }
        case .spin: while true { errno = 0 }
        case .sleep: while true { sleep(60) }
        case .recover: _ = mayGoOn.wait(timeout: .now() + longestWait)
        case .debug: usleep(2_500_000)
        }
    }
}
