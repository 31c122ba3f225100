import Foundation
import LinuxSupport
import Testing
import TestSupport

@testable import StallReports

/// The capabilities of a monitor in a process of its own; ``PostureMatrixTests`` compares them with its reports.
@Suite struct CapabilityTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test func `the tool asks the monitor what works`() throws {
        let library = try Preload.forbid.make(in: directory)
        let host = try TestHost(
            ["control", directory.path, "wait"], wrapper: ["FORBID_CALLS=ptrace:1", "LD_PRELOAD=\(library)"])
        var answer: Tool.Diagnosis?
        let isThere = eventually(every: 100) {
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
        let text = try Tool.run(["doctor", "\(host.pid)"])
        #expect(text.contains("Missing: capture by ptrace (Operation not permitted)\n"))
        #expect(text.contains("Not tried (a proof shows it: stallwatch doctor --prove): capture by signal\n"))
        #expect(text.contains("\n    set:  systemd: SystemCallFilter=ptrace on a line of its own\n"))
        // There a thread that computes is captured by a signal, and a proof says so.
        let isProven = eventually(every: 100) {
            let text = try? Tool.run(["doctor", "--prove", "--json", "\(host.pid)"])
            let proof = text.flatMap { try? Tool.decode(Tool.Diagnosis.self, $0) }?.proof
            return proof?.isWhole == true && proof?.trials.first { $0.kind == .cpu }?.method == .signal
        }
        #expect(isProven)
        #expect(try Tool.run(["doctor", "\(host.pid)"]).contains("capture by signal, process_vm_readv"))
    }

    /// There /proc/self/exe is the dynamic linker.
    @Test func `a program that the dynamic linker starts has names and lines`() throws {
        #if arch(arm64)
            let linker = "/lib/ld-linux-aarch64.so.1"
        #else
            let linker = "/lib64/ld-linux-x86-64.so.2"
        #endif
        let report = try TestHost.stall(milliseconds: 300, in: directory, wrapper: [linker])
        #expect(report.process.name == "stallwatch-test-host")
        let lines = report.frames.filter { $0.file?.hasSuffix("TestHost.swift") == true }.compactMap(\.line)
        #expect(!lines.isEmpty)
    }
}

/// What a monitor costs a process with a gigabyte of memory under a seccomp filter, as in a container.
@Suite struct LargeProcessTests {
    /// The page faults that one step may cause; a copy of the process causes 262,144.
    private static let mostFaults = 20_000
    /// The time in which a step's page faults have happened, in seconds: the app writes all its memory ten times a second.
    private static let time = 1.0

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
        let isControlled = eventually(every: 100) { (try? Tool.run(["state", "\(host.pid)"])) != nil }
        #expect(isControlled)
        func faults(_ name: String) throws {
            Thread.sleep(forTimeInterval: Self.time)
            // The page faults are field 10 of proc_pid_stat(5); field 3 follows the last parenthesis.
            let fields = readSmallFile("/proc/\(host.pid)/stat")?.split(separator: ")").last?.split(separator: " ")
            let now = try #require(fields.flatMap { Int($0[7]) })
            print("large process: \(name) caused \(now - before) page faults")
            #expect(now - before < Self.mostFaults, "\(name)")
            before = now
        }
        try faults("start")
        _ = try Tool.run(["stacks", "\(host.pid)"])
        try faults("stacks")
    }
}

/// What the crash handler of the Swift runtime prints about a program with a monitor.
@Suite struct CrashOutputTests {
    /// Runs a program that crashes; returns its output without what differs from run to run: addresses, times, and the
    /// number of images.
    private func crash(_ place: String, threads: String) throws -> String {
        let result = try Command(
            program: Command.product("stallwatch-test-host"), arguments: ["crash", place],
            environment: [
                "SWIFT_BACKTRACE":
                    "enable=yes,color=no,interactive=no,symbolicate=fast,registers=none,threads=\(threads)"
            ]
        ).run()
        #expect(result.reason == .uncaughtSignal, "\(result.text)")
        return result.text
            .replacing(/0x[0-9a-f]+/, with: "ADDRESS")
            .replacing(/took [0-9.]+/, with: "took TIME")
            .replacing(/[0-9]+ omitted/, with: "SOME omitted")
    }

    @Test func `a crash looks as it does without a monitor`() throws {
        let bare = try crash("bare", threads: "crashed")
        #expect(bare.contains("crashed:"), "\(bare)")
        #expect(bare.contains("Crash.crash()"))
        #expect(try crash("monitored", threads: "crashed") == bare)
    }

    @Test(arguments: ["monitored", "sink"])
    func `a crash is shown on every thread, and none is missing`(place: String) throws {
        let output = try crash(place, threads: "preset")
        #expect(output.contains("crashed:"), "\(output)")
        #expect(output.contains("Crash.crash()"))
        #expect(!output.contains("failed to suspend"), "\(output)")
        #expect(output.contains("\"stallwatch-dog\":"), "\(output)")
    }
}
