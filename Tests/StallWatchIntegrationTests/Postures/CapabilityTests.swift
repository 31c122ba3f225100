import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports

/// The capabilities of a monitor in a process of its own.
///
/// ``PostureMatrixTests`` compares them with its reports.
@Suite(.serialized) struct CapabilityTests {
    /// Starts the host where ptrace is refused.
    private func start(
        _ arguments: [String], _ directory: TemporaryDirectory, environment: [String] = []
    ) throws -> TestHost {
        let library = try Preload.forbid.make(in: directory)
        return try TestHost(arguments, wrapper: ["FORBID_CALLS=ptrace:1"] + environment + ["LD_PRELOAD=\(library)"])
    }

    /// The kernel ends a process that sends a signal, and ptrace is refused: the monitor does not try signals.
    @Test func `a filter that kills does not end a program at its start`() throws {
        let directory = try TemporaryDirectory()
        let arguments = ["stalls", directory.path("reports"), "20000", "1", "500", "500"]
        #expect(try start(arguments, directory, environment: ["FORBID_SIGNALS=1"]).finish().last == "S 0")
    }

    @Test func `the tool reads what the monitor has found`() throws {
        let directory = try TemporaryDirectory()
        // Sleeps for longer than the test takes, and for less than its threshold.
        let arguments = ["stalls", directory.path("reports"), "90000", "1", "60000", "60000"]
        let host = try start(arguments, directory)
        // The file is there as soon as the monitor has tried everything.
        var answer: Tool.Diagnosis?
        let isThere = eventually {
            let text = try? Tool.run(["doctor", "--json", "\(host.pid)"])
            answer = text.flatMap { try? Tool.decode(Tool.Diagnosis.self, $0) }
            return answer?.source == "monitor"
        }
        #expect(isThere)
        let found = try #require(answer)
        #expect(found.capabilities[.ptrace]?.state == .missing)
        #expect(found.capabilities.environment.pid == host.pid)
        #expect(found.capabilities.environment.seccompMode == 2)
        #expect(found.process?.isMonitored == true)
        #expect(found.process?.reportDirectory == directory.path("reports"))
        // The file has no name in the directory.
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("reports"))
        #expect(names == [])
        let text = try Tool.run(["doctor", "\(host.pid)"])
        #expect(text.contains("Missing: capture by ptrace (Operation not permitted)\n"))
        #expect(text.contains("\n    set:  systemd: SystemCallFilter=ptrace on a line of its own\n"))
    }

    /// There /proc/self/exe is the dynamic linker.
    @Test func `a program that the dynamic linker starts has names and lines`() throws {
        #if arch(arm64)
            let linker = "/lib/ld-linux-aarch64.so.1"
        #else
            let linker = "/lib64/ld-linux-x86-64.so.2"
        #endif
        let directory = try TemporaryDirectory()
        let host = try TestHost(["stalls", directory.path("reports"), "50", "1", "300", "300"], wrapper: [linker])
        #expect(host.finish().last == "S 1")
        let files = try FileManager.default.contentsOfDirectory(atPath: directory.path("reports"))
        let file = try #require(files.first { $0.hasPrefix("stall-") })
        let report = try directory.report("reports/\(file)")
        #expect(report.process.name == "stallwatch-test-host")
        #expect(report.culprit?.function.contains("stallOnce") == true, "\(report.culprit?.function ?? "none")")
        let lines = report.frames.filter { $0.file?.hasSuffix("TestHost.swift") == true }.compactMap(\.line)
        #expect(!lines.isEmpty)
    }
}

/// What a monitor costs a process with a gigabyte of memory under a seccomp filter, as in a container.
@Suite(.serialized) struct LargeProcessTests {
    /// The page faults that one step may cause; a copy of the process causes 262,144.
    private static let mostFaults = 2_000
    /// The time in which a step's page faults have happened, in seconds: the app writes all its memory ten times a second.
    private static let time = 2.0

    @Test func `a monitor copies no memory of the app`() throws {
        let directory = try TemporaryDirectory()
        let forbid = try Preload.forbid.make(in: directory)
        let host = try TestHost(
            ["control", directory.path, "large"], wrapper: ["FORBID_CALLS=nothing:1", "LD_PRELOAD=\(forbid)"])
        // The count before the monitor starts.
        let line = host.firstLine()
        var before = try #require(line.hasPrefix("F ") ? Int(line.dropFirst(2)) : nil)
        let stat = try #require(readSmallFile("/proc/\(host.pid)/status").flatMap(ProcessStatus.init))
        #expect(stat.seccompMode == 2)
        let isControlled = eventually { (try? Tool.run(["state", "\(host.pid)"])) != nil }
        #expect(isControlled)
        func faults(_ name: String) throws {
            Thread.sleep(forTimeInterval: Self.time)
            let text = try #require(readSmallFile("/proc/\(host.pid)/stat"))
            // Field 10 of proc_pid_stat(5); the first one behind the name is field 3.
            let fields = try #require(text.split(separator: ")").last).split(separator: " ")
            let now = try #require(Int(fields[7]))
            print("large process: \(name) caused \(now - before) page faults")
            #expect(now - before < Self.mostFaults, "\(name)")
            before = now
        }
        try faults("start")
        _ = try Tool.run(["stacks", "\(host.pid)"])
        try faults("stacks")
        _ = try Tool.run(["profile", "\(host.pid)", "--seconds", "1"])
        try faults("profile")
    }
}
