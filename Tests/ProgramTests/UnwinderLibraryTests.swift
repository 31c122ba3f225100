import Foundation
import Glibc
import StackCapture
import TestSupport
import Testing

@testable import StallReports

/// What loading libunwind does to a program, and what a library of its name does that is another.
@Suite struct UnwinderLibraryTests {
    private func stall(in directory: TemporaryDirectory, environment: [String]) throws -> StallReport {
        try TestHost.stall(milliseconds: 200, in: directory, wrapper: environment)
    }

    /// With `RTLD_GLOBAL`, or linked, libunwind would take over `_Unwind_RaiseException` and the like.
    @Test func `libunwind changes no binding of a program`() throws {
        func bindings(_ unwinder: String) throws -> Set<String> {
            let directory = try TemporaryDirectory()
            let report = try stall(
                in: directory,
                environment: [
                    "LD_BIND_NOW=1", "LD_DEBUG=bindings", "LD_DEBUG_OUTPUT=\(directory.path("bindings"))",
                    "STALLWATCH_UNWINDER=\(unwinder)",
                ])
            #expect(report.monitor.unwinder?.hasPrefix(unwinder == "builtin" ? "built-in" : "libunwind") == true)
            let lines = try Tool.shell("grep -hE '`(_Unwind_|backtrace)' '\(directory.path)'/bindings.*").output
            // The number of the process comes first.
            return Set(
                lines.split(separator: "\n").map { String($0.split(separator: ":", maxSplits: 1).last ?? "") })
        }
        let without = try bindings("builtin")
        let with = try bindings("compared")
        try #require(without.contains { $0.contains("`_Unwind_Resume'") }, "\(without)")
        let added = with.subtracting(without).filter { !Self.isOfLibunwind($0) }
        #expect(without.subtracting(with) == [])
        #expect(added == [])
    }

    /// Whether the file whose symbol is bound is libunwind itself.
    private static func isOfLibunwind(_ line: String) -> Bool {
        line.split(separator: " ").first { $0.hasPrefix("/") }?.contains("libunwind") ?? false
    }

    @Test func `a library with libunwind's functions that steps elsewhere is not used`() throws {
        let directory = try TemporaryDirectory()
        let library = try Preload.foreignUnwinder.make(in: directory)
        #if arch(arm64)
            let name = "libunwind-aarch64.so.8"
        #else
            let name = "libunwind-x86_64.so.8"
        #endif
        try FileManager.default.moveItem(atPath: library, toPath: directory.path(name))
        let libraries = [directory.path, ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"]].compactMap(\.self)
        let report = try stall(in: directory, environment: ["LD_LIBRARY_PATH=\(libraries.joined(separator: ":"))"])
        #expect(report.monitor.unwinder == "built-in")
    }
}

/// SECURITY.md lists the system calls of the monitor, and strace(1) shows them; a process has one tracer, so captures
/// by ptrace fail under strace and their calls are not seen.
@Suite struct SystemCallListTests {
    @Test(.needs("strace"), .needsPtrace)
    func `every system call of the monitor is listed in SECURITY.md`() throws {
        let listed = try Self.listedCalls()
        try #require(listed.count > 20)
        let directory = try TemporaryDirectory()
        let file = try directory.write("pages", [UInt8](repeating: 7, count: 1 << 20))
        let stalls = try Self.trace(["main-stalls", directory.path("reports"), "50", "150", file], in: directory)
        let ofThreads = stalls.callsOfMonitor
        try #require(ofThreads.isSuperset(of: ["futex", "pread64", "openat", "renameat", "fsync"]))
        #expect(ofThreads.subtracting(listed).sorted() == [])
        // What start() and stop() do on the program's own thread.
        let bare = try Self.trace(["turns", "timer", "20", "bare"], in: directory)
        let monitored = try Self.trace(["turns", "timer", "20", "monitored"], in: directory)
        let ofCaller = monitored.callsOfMain.subtracting(bare.callsOfMain)
        #expect(ofCaller.subtracting(listed).sorted() == [])
    }

    /// The words in code style of the section "System calls".
    private static func listedCalls() throws -> Set<String> {
        let text = try String(contentsOf: Repository.root.appendingPathComponent("SECURITY.md"), encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n## System calls\n").dropFirst().first)
        let words = section.components(separatedBy: "\n## ")[0].split(separator: "`", omittingEmptySubsequences: false)
        return Set(words.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) })
    }

    private static func trace(_ arguments: [String], in directory: TemporaryDirectory) throws -> Trace {
        let output = directory.path("trace")
        _ = try TestHost(arguments, wrapper: ["strace", "-f", "-qq", "-o", output]).finish()
        return Trace(try String(contentsOfFile: output, encoding: .utf8))
    }

    private struct Trace {
        private var calls: [Substring: Set<String>] = [:]
        /// The threads of the monitor, by the names that they give themselves, and what these start.
        private var monitor: Set<Substring> = []
        private var main: Substring?

        init(_ text: String) {
            var parents: [(parent: Substring, child: Substring)] = []
            for line in text.split(separator: "\n") {
                let words = line.split(separator: " ", maxSplits: 1)
                guard words.count == 2 else { continue }
                let (thread, rest) = (words[0], words[1].drop { $0 == " " })
                if main == nil { main = thread }
                if rest.contains("PR_SET_NAME, \"stallwatch-") { monitor.insert(thread) }
                if rest.contains("clone") || rest.contains("vfork"), let result = rest.split(separator: " ").last,
                    Int(result) != nil
                {
                    parents.append((thread, result))
                }
                let name = rest.prefix { $0.isLowercase || $0.isNumber || $0 == "_" }
                guard !name.isEmpty, rest.dropFirst(name.count).first == "(" else { continue }
                calls[thread, default: []].insert(String(name))
            }
            for (parent, child) in parents where monitor.contains(parent) { monitor.insert(child) }
        }

        var callsOfMonitor: Set<String> { monitor.reduce(into: []) { $0.formUnion(calls[$1] ?? []) } }
        var callsOfMain: Set<String> { main.flatMap { calls[$0] } ?? [] }
    }
}

/// Programs near the limits of their memory and descriptors, and without the rights that they began with.
@Suite struct LimitTests {
    private let directory = TemporaryDirectory.ofTest()

    private var reports: String { directory.path }

    private static let mainStalls = 8
    /// Limits on the address space in KiB, and how often the program runs under each; without a monitor it needs some
    /// 90,000, and 310,000 is where libdw ended most runs.
    private static let addresses = [(160_000, 1), (200_000, 1), (250_000, 1), (310_000, rounds(2)), (400_000, 1)]

    @Test(arguments: addresses)
    func `a limit on addresses ends no program`(kibibytes: Int, runs: Int) throws {
        let file = try directory.write("pages", [UInt8](repeating: 7, count: 1 << 20))
        for _ in 0..<runs {
            let host = try TestHost(
                ["main-stalls", reports, "50", "100", file], wrapper: ["prlimit", "--as=\(kibibytes << 10)"])
            let lines = host.finish()
            #expect(host.process.terminationReason == .exit && host.process.terminationStatus == 0, "\(lines)")
            #expect(lines.count { $0.hasPrefix("K ") } == Self.mainStalls)
        }
    }

    @Test func `captures of many threads keep no descriptors`() throws {
        let host = try TestHost(["many-threads", reports], wrapper: ["prlimit", "--nofile=128"])
        let counts = try #require(host.finish().last).split(separator: " ").compactMap { Int($0) }
        try #require(counts.count == 2)
        #expect(counts[1] <= counts[0], "\(counts)")
        func stacks(of report: StallReport) -> Int { report.otherThreads?.count { $0.stack != nil } ?? 0 }
        // One of a turn that the watchdog has missed has no threads.
        let report = try #require(try directory.reports().max { stacks(of: $0) < stacks(of: $1) })
        let others = report.otherThreads ?? []
        // All captures share a tenth of a second.
        let late = others.count { $0.reason == CaptureFailure.outOfTime.description }
        #expect(stacks(of: report) + late >= 60, "\(stacks(of: report)) of \(others.count) threads have a stack")
        if late > 0 { notRun("there was no time to capture \(late) of \(others.count) threads") }
    }

    /// CoreFoundation and libdispatch end a process that has no descriptors left for a run loop: the monitor makes none then, and
    /// does not start where it would take those of the program's.
    @Test(arguments: [18, 21, 22, 23, 24, 27])
    func `a limit on descriptors ends no program`(descriptors: Int) throws {
        let file = try directory.write("pages", [UInt8](repeating: 7, count: 1 << 20))
        let host = try TestHost(
            ["main-stalls", reports, "50", "100", file], wrapper: ["prlimit", "--nofile=\(descriptors)"])
        let lines = host.finish()
        #expect(host.process.terminationReason == .exit && host.process.terminationStatus == 0, "\(lines)")
        let isRefused = lines.contains { $0.hasPrefix("R main cannot be watched") }
        #expect(descriptors < 24 && isRefused || lines.count { $0.hasPrefix("K ") } == Self.mainStalls)
    }

    @Test func `near the limit of descriptors none is kept`() throws {
        let host = try TestHost(["many-threads", reports], wrapper: ["prlimit", "--nofile=28"])
        let lines = host.finish()
        #expect(host.process.terminationStatus == 0, "\(lines)")
        let counts = lines.last?.split(separator: " ").compactMap { Int($0) } ?? []
        #expect(counts.count == 2 && counts[1] <= counts[0], "\(lines)")
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `after a change of the user blocked threads have stacks`() throws {
        let host = try TestHost(["drop-user", reports])
        // A busy machine may add a stall; no write has failed.
        #expect(host.finish().last?.hasSuffix(" 0") == true)
        let report = try #require(try directory.reports().first { $0.cause?.kind == .sleep })
        #expect(report.samples.contains { $0.method == .read })
    }
}
