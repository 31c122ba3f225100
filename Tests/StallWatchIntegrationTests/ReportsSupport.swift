import Foundation
import Glibc
import StallWatch
import Synchronization
import Testing

extension TemporaryDirectory {
    /// The names of the reports' files, sorted.
    var reportNames: [String] { names.filter { $0.hasPrefix("stall-") && $0.hasSuffix(".json") } }

    func report(_ name: String) throws -> StallReport {
        let data = try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))
        return try StallReport(jsonData: Array(data))
    }

    func reports() throws -> [StallReport] { try reportNames.map(report) }
}

/// A process of the test host.
struct TestHost {
    let process = Process()
    private let output = Pipe()

    /// Starts it with those arguments, by way of the command `wrapper` if there is one.
    init(_ arguments: [String], wrapper: [String] = []) throws {
        // The host is built beside the tests.
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let host = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(
            "stallwatch-test-host")
        process.executableURL = wrapper.isEmpty ? host : URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = wrapper.isEmpty ? arguments : wrapper + [host.path] + arguments
        process.standardOutput = output
        // The runtime's own report of a crash takes its time, and is none of the test's business.
        process.environment = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
        try process.run()
    }

    var pid: Int32 { process.processIdentifier }

    /// Waits for its end.
    ///
    /// Returns what it wrote, by lines.
    func finish() -> [String] {
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

/// A loop whose turns the test makes.
struct ProbedLoop {
    let probe = LoopProbe(label: "probe")

    /// One turn on the calling thread.
    func turn(_ work: () -> Void) {
        probe.beginTurn()
        work()
        probe.endTurn()
    }
}

/// Keeps what closures get on other threads.
final class Collected<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])
    var all: [Value] { values.withLock { $0 } }
    func add(_ value: Value) { values.withLock { $0.append(value) } }
}

/// Waits, 20 seconds at most, for what another thread does.
///
/// Returns whether it did.
func eventually(_ condition: () -> Bool) -> Bool {
    for _ in 0..<4_000 {
        if condition() { return true }
        usleep(5_000)
    }
    return condition()
}

/// Nanoseconds of the monotonic clock.
func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Runs `scripts/validate-reports.py --strict` on a directory of reports.
///
/// Returns its status and what it says.
func validateReports(_ path: String) throws -> (status: Int32, output: String) {
    let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", repository.path + "/scripts/validate-reports.py", "--strict", path]
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, output)
}
