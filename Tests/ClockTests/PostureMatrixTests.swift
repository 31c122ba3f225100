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
        Posture.hiddenProcesses, .foreignProc, .undumpable, .readOnly, .dropped,
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
        let (name, cells) = try (PostureRun.expected[stall].name, Self.runs.get().values.map { $0.cells[stall] })
        let (judged, short) = (cells.count { !$0.isNotJudged }, cells.count { $0 == .notJudged(PostureRun.shortOfCPU) })
        // Other programs that want every CPU take too much of it from a stall that is to be one of computing.
        if judged * 2 <= cells.count, judged + short == cells.count {
            return notRun("\(name): the machine is short of CPU in all but \(judged) of \(cells.count) postures")
        }
        #expect(judged * 2 > cells.count, "\(name): \(judged) of \(cells.count)")
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
            guard case .wrong(let what) = cell else { continue }
            // Where no wait can be seen, a look before it may be the only one with a stack, and is blamed for all of it.
            let isBlind = run.posture.name == Posture.foreignProc.name
            withKnownIssue("an early look is blamed for a wait that is not seen", isIntermittent: true) {
                Issue.record("\(run.posture.name), \(expected.name): \(what)")
            } when: {
                isBlind
            }
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
