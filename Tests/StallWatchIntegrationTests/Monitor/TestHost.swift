import Foundation
import Glibc
import TestSupport

@testable import LinuxSupport

/// A process of the test host.
///
/// It ends with this object at the latest.
final class TestHost {
    let process: Process
    private let output = Pipe()
    /// The output so far.
    private var text = Data()

    /// Starts the host with these arguments, through the command `wrapper` if it is not empty.
    ///
    /// `program` is a copy of the host; `nil` for the host itself.
    init(_ arguments: [String], wrapper: [String] = [], program: String? = nil) throws {
        let words = wrapper + [try program ?? Command.product("stallwatch-test-host")] + arguments
        process = Command(
            program: "/usr/bin/env", arguments: words,
            // The runtime's crash report takes seconds and is not tested here.
            environment: ["SWIFT_BACKTRACE": "enable=no"]
        ).process()
        process.standardOutput = output
        try process.run(atMost: Process.timeout)
    }

    deinit { process.kill() }

    var pid: Int32 { process.processIdentifier }

    /// Waits for the first line.
    ///
    /// The host writes each line with one call.
    func firstLine() -> String {
        text += output.fileHandleForReading.availableData
        return String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// Waits for the end of the process.
    ///
    /// - Returns: The lines of its output.
    func finish() -> [String] {
        text += output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

/// Nanoseconds of the monotonic clock.
func monotonicNanoseconds() -> UInt64 {
    monotonicNow()
}
