import Dispatch
import Foundation
import Glibc
import LinuxSupport
import Synchronization
import Testing
import TestSupport

@testable import StallReports

/// The main stalls under every restriction that containers and systems set: the program starts, the right function is
/// blamed, the cause is right or missing where the posture says so, no call is interrupted, and what the monitor and
/// `stallwatch doctor` say about the posture agrees with the reports.
@Suite(.serialized) struct PostureMatrixTests {
    private static let always =
        [Posture.none] + Posture.filtered + Posture.withoutFile + Posture.limited
        + [.sandboxed, .withoutListener]

    private static let fileSize = 16 << 20
    /// Most of a run is waiting, so several run at a time.
    private static let lanes = 3
    private static let maximumRepetitions = 3

    /// Postures that need rights or a kernel that not every machine has.
    private static let available = [
        Posture.unprivileged, .hiddenProcesses, .foreignProc, .undumpable, .readOnly, .dropped,
    ].filter(\.isAvailable)

    /// The runs of all postures for one program, by name.
    private static let runs = Result { try runAll(always + available) }

    @Test(arguments: (always + available).map(\.name)) func `stalls are explained`(posture: String) throws {
        let run = try #require(try Self.runs.get()[posture])
        expectRightCells(run)
        guard posture == Posture.foreignProc.name else { return }
        #expect(run.capabilities?.environment.isProcForeign == true)
        #expect(run.diagnosis?.environment.isProcForeign == true)
        #expect(run.capabilities?.summary?.hasPrefix("/proc belongs to another PID namespace") == true)
    }

    /// The scope is the machine's, so no other run may be under way.
    @Test(.enabled(if: Posture.yama(1).isAvailable, "Yama: needs root and a kernel with it"), arguments: [1, 2])
    func `stalls are explained under Yama`(scope: Int) throws {
        _ = try Self.runs.get()
        let run = try YamaScope.with(scope) { try Self.runAll([.yama(scope)]) }
        expectRightCells(try #require(run.values.first))
    }

    /// A machine whose temporary files are in memory reads no page from a disk.
    @Test(arguments: PostureRun.expected.indices.filter { PostureRun.expected[$0].cause != .paging })
    func `each stall is judged in most postures`(stall: Int) throws {
        let runs = try Self.runs.get().values
        let judged = runs.count { !$0.cells[stall].isNotJudged }
        #expect(judged * 2 > runs.count, "\(PostureRun.expected[stall].name): \(judged) of \(runs.count)")
    }

    /// The reference: the comparison finds a wrong claim.
    @Test func `a wrong claim is contradicted`() throws {
        let run = try #require(try Self.runs.get()[Posture.none.name])
        let capabilities = try #require(run.capabilities)
        for name in [Capabilities.FeatureName.read, .waitChannel, .status, .bootID, .symbols] {
            var wrong = capabilities
            let index = try #require(wrong.features.firstIndex { $0.name == name })
            wrong.features[index].state = wrong.features[index].state == .works ? .missing : .works
            #expect(CapabilityClaims(capabilities: wrong, reports: run.reports).contradictions.count == 1)
        }
    }

    private func expectRightCells(_ run: PostureRun) {
        #expect(run.hasEnded, "\(run.output)")
        #expect(run.interrupted == 0, "\(run.output)")
        for (expected, cell) in zip(PostureRun.expected, run.cells) {
            if case .wrong(let what) = cell { Issue.record("\(run.posture.name), \(expected.name): \(what)") }
        }
        // The monitor tries what works at its start, with the rights that it has then.
        if run.posture.afterStart != .dropUser { #expect(run.wrongClaims == [], "\(run.posture.name)") }
        for (expected, cell) in zip(PostureRun.expected, run.cells) {
            if case .notJudged(let what) = cell { notRun("\(run.posture.name), \(expected.name): \(what)") }
        }
    }

    /// Whether the machine was too busy to judge more than one cell.
    private static func isShort(_ run: PostureRun) -> Bool { run.cells.count(where: \.isNotJudged) > 1 }

    private static func runAll(_ postures: [Posture]) throws -> [String: PostureRun] {
        let scratch = try TemporaryDirectory()
        let libraries = try [Preload.forbid, .hide].map { try $0.make(in: scratch) }
        let files = try (0..<lanes).map { try file(named: "pages-\($0)", in: scratch) }
        let results = Mutex<[String: Result<PostureRun, any Error>]>([:])
        let next = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: min(lanes, postures.count)) { lane in
            while case let index = next.add(1, ordering: .relaxed).oldValue, index < postures.count {
                let run = Result { try PostureRun(postures[index], libraries: libraries, file: files[lane]) }
                results.withLock { $0[postures[index].name] = run }
            }
        }
        var runs = try results.withLock { try $0.mapValues { try $0.get() } }
        // The lanes compete for processors: a run that was short of them is repeated alone.
        for posture in postures {
            for _ in 0..<maximumRepetitions where runs[posture.name].map(isShort) == true {
                runs[posture.name] = try PostureRun(posture, libraries: libraries, file: files[0])
            }
        }
        print(PostureRun.matrix(postures.compactMap { runs[$0.name] }))
        return runs
    }

    /// Makes a file on the disk that any user can read.
    private static func file(named name: String, in directory: TemporaryDirectory) throws -> String {
        let path = try directory.write(name, [UInt8](repeating: 7, count: fileSize))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        // Only clean pages can be dropped.
        try #require(fsync(descriptor) == 0)
        return path
    }
}

/// The capabilities of a monitor in a process of its own; ``PostureMatrixTests`` compares them with its reports.
@Suite(.serialized) struct CapabilityTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test func `the tool asks the monitor what works`() throws {
        let library = try Preload.forbid.make(in: directory)
        let host = try TestHost(
            ["control", directory.path, "wait"], wrapper: ["FORBID_CALLS=ptrace:1", "LD_PRELOAD=\(library)"])
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
        let isControlled = eventually { (try? Tool.run(["state", "\(host.pid)"])) != nil }
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
