package import Foundation
import Glibc
import LinuxSupport
package import StallReports
package import Testing

package enum Tool {
    /// Runs the tool, and again while a monitor tells it to try again, as one that gets no CPU for seconds does.
    @discardableResult
    package static func run(_ arguments: [String]) throws -> String {
        let command = try Command(program: Command.product("stallwatch"), arguments: arguments)
        let end = endOfPatience
        var last = try command.run()
        func isToBeTriedAgain() -> Bool { last.status == tryAgain && last.text.contains("try again") }
        while isToBeTriedAgain(), monotonicNow() < end {
            usleep(100_000)
            last = try command.run()
        }
        return try command.check(last)
    }

    /// The exit status of a tool that is to be tried again later (sysexits.h).
    private static let tryAgain: Int32 = 75

    /// Runs a shell's command line, in which `$TOOL` is the tool.
    package static func shell(_ line: String) throws -> Command.Output {
        let tool = try Command.product("stallwatch")
        return try Command(program: "/bin/bash", arguments: ["-c", line], environment: ["TOOL": tool]).run()
    }

    package static func reader(_ name: String, _ arguments: [String]) throws -> Command.Output {
        let path = Repository.root.appendingPathComponent("Tests/Programs/\(name)").path
        return try Command(program: "/usr/bin/env", arguments: ["python3", path] + arguments).run()
    }

    /// A directory whose `stalls` has reports of real stalls, of this run's scenarios.
    package static let scenarios: Result<String, any Error> = Result {
        let directory = SymbolicationToolchain.scratch + "/scenarios"
        try runScenarios(into: directory + "/stalls")
        return directory
    }

    /// Runs the scenarios, which stall real loops, and writes the reports to `directory`.
    ///
    /// Its status says whether durations and causes are right, too, which other programs disturb.
    private static func runScenarios(into directory: String) throws {
        let functions = [
            "cpu-spin": spinning, "sleep": "sleepTooLong(for:)", "lock": "waitForTheLock(_:)",
            "timer": "pollNothing(for:)", "source0": "sleepInFoundation(for:)",
        ]
        let result = try Command(
            program: Command.product("stallwatch-scenarios"),
            arguments: ["--output", directory] + functions.keys.sorted().flatMap { ["--scenario", $0] }
        ).run()
        let files = ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [])
            .filter(StallReport.isFileName)
        let culprits = try files.compactMap { file in
            let data = try Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(file)"))
            return try StallReport(jsonData: Array(data)).culprit?.function
        }
        guard result.reason == .exit, Set(culprits).isSuperset(of: functions.values) else {
            throw Command.Failure(description: result.text)
        }
    }

    /// The function in which the scenario `cpu-spin` computes.
    package static let spinning = "spinTheCPU(for:)"

    package struct Diagnosis: Decodable {
        package struct Process: Decodable {
            package let isMonitored: Bool
            package let reportDirectory: String?
        }
        package let source: String
        package let capabilities: Capabilities
        package let process: Process?
        package let proof: MonitorProof?
    }

    package struct Top: Decodable {
        package let totalMilliseconds: Double
        package let reports: Int
    }

    package struct Tree: Decodable {
        package struct Node: Decodable {
            package let parent: Int?
            package let function: String
            package let totalMilliseconds: Double
        }
        package let totalMilliseconds: Double
        package let nodes: [Node]

        /// The stalled time of all stacks with the function; of nested calls only the outermost counts.
        package func milliseconds(of function: String) -> Double {
            nodes.indices.reduce(0) { sum, index in
                var next = nodes[index].parent
                while let node = next, nodes[node].function != function { next = nodes[node].parent }
                return nodes[index].function == function && next == nil ? sum + nodes[index].totalMilliseconds : sum
            }
        }
    }

    package static func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }
}

/// A process of the test host, or of a program like it; it ends with this object at the latest.
package final class TestHost {
    package let process: Process
    private let output = Pipe()
    private var text = Data()

    /// Starts the host with these arguments, through the command `wrapper` if it is not empty; `program` is a copy of
    /// the host, or another program; `nil` for the host itself.
    package init(
        _ arguments: [String], wrapper: [String] = [], program: String? = nil, environment: [String: String?] = [:],
        input: Pipe? = nil, errors: Pipe? = nil
    ) throws {
        let words = wrapper + [try program ?? Command.product("stallwatch-test-host")] + arguments
        process = Command(
            program: "/usr/bin/env", arguments: words,
            // The runtime's crash report takes seconds and is not tested here.
            environment: environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
        ).process()
        process.standardOutput = output
        if let input { process.standardInput = input }
        if let errors { process.standardError = errors }
        try process.run(atMost: Process.timeout)
    }

    /// Runs the host, which stalls once for so long at least, and returns the report of that: a busy machine may add
    /// others.
    package static func stall(
        milliseconds: Int, in directory: TemporaryDirectory, wrapper: [String] = []
    ) throws -> StallReport {
        let host = try TestHost(["seen-stall", directory.path("reports"), "\(milliseconds)"], wrapper: wrapper)
        #expect(host.finish().last?.hasPrefix("S ") == true)
        let files = try FileManager.default.contentsOfDirectory(atPath: directory.path("reports"))
        let reports = try files.filter { $0.hasPrefix("stall-") }.map { try directory.report("reports/\($0)") }
        return try #require(reports.first { $0.isOfTestHost }, "\(reports.map(\.summary))")
    }

    /// Starts the host's app that is stuck or busy in a way of `kind`, and waits until it is.
    package static func control(_ kind: String, in directory: TemporaryDirectory) throws -> TestHost {
        let host = try TestHost(["control", directory.path, kind])
        _ = host.firstLine()
        return host
    }

    deinit { process.kill() }

    package var pid: Int32 { process.processIdentifier }

    /// Waits for the first line; the host writes each line with one call.
    package func firstLine() -> String {
        text += output.fileHandleForReading.availableData
        return String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// Waits for a line, and returns the lines before it; all lines if the process ends first.
    package func lines(until last: String) -> [String] {
        while !text.starts(with: Data("\(last)\n".utf8)), text.range(of: Data("\n\(last)\n".utf8)) == nil {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { break }
            text += more
        }
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        return Array(lines.prefix { $0 != last })
    }

    /// Waits for the end of the process; returns the lines of its output.
    package func finish() -> [String] {
        text += output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

extension StallReport {
    /// Whether the report is of a stall that the test host makes, and not of a turn that other programs delay.
    package var isOfTestHost: Bool { culprit?.function.contains("stallOnce(milliseconds:") == true }
}

/// A small shared library, compiled by the tests and preloaded into a program to change its behavior.
package enum Preload: String {
    case forbid
    case hide
    case allocations
    case exceptionOwner = "exception_owner"
    case loopback
    case span
    case foreignUnwinder = "foreign_unwinder"
    case coarseClock = "coarse_clock"

    package func make(in directory: TemporaryDirectory) throws -> String {
        let library = directory.path("\(rawValue).so")
        let source = Repository.support.appendingPathComponent("Preload/\(rawValue).c").path
        try Command(
            program: try #require(Command.find("clang")),
            arguments: ["-shared", "-fPIC", "-Wall", "-Wextra", source, "-o", library]
        ).succeed()
        return library
    }
}

/// The Swift toolchain's tools and the files that they build for these tests.
package enum SymbolicationToolchain {
    /// The directory of the first `swiftc` in the search path.
    package static let directory: String? = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":")
        .map { "\($0)/swiftc" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
        .flatMap { realpath($0, nil) }
        .map { path in
            defer { free(path) }
            return URL(fileURLWithPath: String(cString: path)).deletingLastPathComponent().path
        }

    package static let isComplete = ["swiftc", "clang", "llvm-symbolizer", "llvm-objcopy"].allSatisfy { tool in
        directory.map { FileManager.default.isExecutableFile(atPath: "\($0)/\(tool)") } ?? false
    }

    /// The directory for this run's files, removed when the process ends; the pid in its name separates runs.
    package static let scratch: String = {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("stallwatch-symbols-\(getpid())").path
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        atexit { try? FileManager.default.removeItem(atPath: SymbolicationToolchain.scratch) }
        return path
    }()

    @discardableResult
    package static func run(_ tool: String, _ arguments: [String], input: String = "") throws -> String {
        let program = tool.hasPrefix("/") ? tool : "\(directory ?? "")/\(tool)"
        return try Command(program: program, arguments: arguments, directory: scratch, input: input).succeed()
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a suite on a machine without the Swift toolchain's tools.
    package static var needsToolchain: Self {
        .enabled(if: SymbolicationToolchain.isComplete, "the toolchain has no clang, llvm-symbolizer or llvm-objcopy")
    }
}

/// Names that mean something to a terminal, a page, Markdown, XML or a CI system if they are not escaped.
package enum HostileNames {
    private static let pieces: [String] = [
        "\"", "'", "<", ">", "&", "`", "``", "|", "\\", "\\|", "*", "_", "[", "]", "(", ")", "~", "$", "@", "#", "%",
        ",",
        ";", ":", "!", "\n", "\r", "\r\n", "\t", " ", "  ", "\n::error::", "::warning file=a::", "##[error]", "-->",
        "]]>",
        "<!--", "<![CDATA[", "<script>window.wasRun=1</script>", "</script>", "\" onerror=\"window.wasRun=1",
        "\"\u{200d} onmouseover=\"window.wasRun=1", "<img src=x onerror=window.wasRun=1>", "<b>", "</div>", "&lt;",
        "&#60;", "%0A", "%3A", "![a](https://example.com/a.png)", "[a](https://example.com)", "https://example.com",
        "www.example.com", "@everyone", "**bold**", "~~gone~~", "```", "# title", "- item", "| a | b |", "`\u{301}",
        "|\u{301}", "\u{301}", "\u{20dd}", "\u{200d}", "\u{fe0f}", "\u{202e}", "\u{2066}", "\u{2069}", "\u{200f}",
        "\u{2028}", "\u{2029}", "\u{1b}[2J", "\u{1b}[31m", "\u{1b}]0;title\u{7}", "\u{1b}c", "\u{9b}2J",
        "\u{9d}0;t\u{9c}",
        "\u{7f}", "\u{fffe}", "\u{feff}", "a", "f(_:)", "std::vector", "é", "漢", "😀",
    ]

    /// Returns names, the same ones for the same seed.
    package static func make(_ count: Int, seed: UInt64) -> [String] {
        var generator = SeededGenerator(seed: seed)
        return (0..<count).map { _ in
            (0..<Int.random(in: 1...7, using: &generator)).map { _ in
                // Every fifth piece is one of the controls.
                guard Int.random(in: 0..<5, using: &generator) > 0 else {
                    let value = UInt32.random(in: 0..<0x40, using: &generator)
                    // Below U+00A0 every value is a scalar.
                    return Unicode.Scalar(value < 0x20 ? value : value + 0x60).map { String($0) } ?? ""
                }
                return pieces[Int.random(in: 0..<pieces.count, using: &generator)]
            }.joined()
        }
    }
}

/// A socket that receives datagrams, as a service manager has one for its services.
package final class DatagramReceiver: Sendable {
    package struct Failure: Error {
        package let errno: Int32
    }

    package let name: String
    private let descriptor: Int32
    private let directory: TemporaryDirectory?

    /// Creates a socket; if `isAbstract`, its name is in the abstract namespace instead of a directory.
    package init(isAbstract: Bool = false) throws {
        directory = isAbstract ? nil : try TemporaryDirectory()
        name = directory?.path("notify") ?? "@stallwatch-tests-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        var bytes = Array(name.utf8)
        if isAbstract { bytes[0] = 0 } else { bytes.append(0) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let result = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard descriptor >= 0, result == 0 else { throw Failure(errno: errno) }
    }

    deinit { close(descriptor) }

    /// Returns the next datagram; `nil` if none arrives before the deadline, in monotonic nanoseconds.
    package func next(until deadline: UInt64 = 0) -> String? {
        var buffer = [UInt8](repeating: 0, count: 8_192)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count >= 0 { return String(decoding: buffer.prefix(count), as: UTF8.self) }
            let now = monotonicNow()
            guard errno == EAGAIN || errno == EINTR, now < deadline else { return nil }
            var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            Glibc.poll(&poll, 1, Int32(min((deadline - now) / 1_000_000 + 1, 1_000)))
        }
    }

    /// Returns all datagrams that come until the deadline, in monotonic nanoseconds.
    package func all(until deadline: UInt64) -> [String] {
        var all: [String] = []
        while let message = next(until: deadline) { all.append(message) }
        return all
    }
}
