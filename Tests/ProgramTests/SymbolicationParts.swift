import Foundation
import Testing
import TestSupport

@testable import StackCapture
@testable import StallReports
@_spi(Benchmarks) @testable import StallSymbols
@testable import StallWatch

/// The mixed executable split into a stripped executable and a debug file.
struct SymbolicationParts {
    let whole: String
    let stripped: String
    let debugFile: String
    let buildID: String
    private let sites: [UInt64]

    init() throws {
        whole = try SymbolicationFixture.mixed.get()
        let scratch = SymbolicationToolchain.scratch
        stripped = "\(scratch)/mixed.stripped"
        debugFile = "\(scratch)/mixed.debug"
        buildID = try #require(try ELFFile(path: whole).buildID())
        try SymbolicationToolchain.run("llvm-objcopy", ["--only-keep-debug", whole, debugFile])
        try SymbolicationToolchain.run(
            "llvm-objcopy", ["--strip-all", "--add-gnu-debuglink=\(debugFile)", whole, stripped]
        )
        var generator = SeededGenerator(seed: 1)
        sites = Array(try CallSites.all(in: whole).shuffled(using: &generator).prefix(60))
    }

    func directory(_ name: String) throws -> String {
        let path = "\(SymbolicationToolchain.scratch)/\(name)"
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    /// Returns a report with an unnamed stack, like that of a stripped program.
    func report(imageAt path: String, buildID: String?) -> StallReport {
        SymbolicationReport.make(imageAt: path, buildID: buildID, offsets: sites)
    }

    func report(imageAt path: String) -> StallReport { report(imageAt: path, buildID: buildID) }

    /// Returns the report that the unstripped executable gives.
    func expected() throws -> StallReport {
        report(imageAt: whole).symbolicated(with: StallReport.DebugSources())
    }

    /// Expects a report of the stripped executable to equal that of the unstripped one.
    func expectWhole(_ report: StallReport) throws {
        let expected = try expected()
        #expect(report.frames == expected.frames)
        #expect(report.stacks == expected.stacks)
        #expect(report.culprit?.function == expected.culprit?.function)
        #expect(report.culprit?.line == expected.culprit?.line)
        #expect(report.images.map(\.reason) == [nil])
        #expect(expected.frames.contains { $0.isInlined == true && $0.line != nil })
    }
}

/// Reports with one artificial sample.
enum SymbolicationReport {
    /// Returns a report whose stack has an unnamed frame at each offset of one image.
    static func make(imageAt path: String, buildID: String?, offsets: [UInt64]) -> StallReport {
        let base: UInt64 = 0x10_0000_0000
        let image = LoadedImage(
            path: path, base: base, addresses: base..<base + 0x1000_0000, buildID: bytes(ofHexadecimal: buildID ?? ""),
            isExecutable: true
        )
        let stack = CapturedStack(
            method: .ptrace, threadState: .running,
            frames: offsets.map { CapturedStack.Frame(address: base + $0, isExact: true) },
            isComplete: true, heldNanoseconds: 0, captureNanoseconds: 0
        )
        let record = StallRecord(
            id: "00000000-0000-7000-8000-000000000000", kind: .stall,
            loop: StallRecord.Loop(label: "main", kind: .runLoop, turn: 1, nesting: 0),
            threshold: 250_000_000, startedAt: Timestamp(microsecondsSince1970: 0), watchdogLate: 0, state: .ended,
            duration: 300_000_000,
            samples: [.init(age: 250_000_000, isValid: true, stack: .success(stack), images: ImageList([image]))]
        )
        let builder = ReportBuilder(
            process: .current(), metadata: [:], inApp: StallMonitor.InApp(),
            symbolication: .inProcess(.none, inApp: StallMonitor.InApp())
        )
        return builder.report(of: record) { _ in }
    }

    private static func bytes(ofHexadecimal text: String) -> [UInt8] {
        let digits = Array(text)
        return stride(from: 0, to: digits.count - digits.count % 2, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
    }
}
