import Foundation
import Glibc
import LinuxSupport
import StallReports
import StallWatch
import Synchronization
import TestSupport
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

/// A process of the test host, which does not outlive this object.
final class TestHost {
    let process: Process
    private let output = Pipe()
    /// What has been read.
    private var text = Data()

    /// Starts it with those arguments, by way of the command `wrapper` if there is one.
    init(_ arguments: [String], wrapper: [String] = []) throws {
        let words = wrapper + [try Command.product("stallwatch-test-host")] + arguments
        process = Command(
            program: "/usr/bin/env", arguments: words,
            // The runtime's own report of a crash takes its time, and is none of the test's business.
            environment: ["SWIFT_BACKTRACE": "enable=no"]
        ).process()
        process.standardOutput = output
        try process.run(atMost: Process.timeout)
    }

    deinit { process.kill() }

    var pid: Int32 { process.processIdentifier }

    /// Waits for the first line that it writes, whole: it writes a line at once.
    func firstLine() -> String {
        text += output.fileHandleForReading.availableData
        return String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// Waits for its end.
    ///
    /// Returns what it wrote, by lines.
    func finish() -> [String] {
        text += output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
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

/// Nanoseconds of the monotonic clock.
func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
