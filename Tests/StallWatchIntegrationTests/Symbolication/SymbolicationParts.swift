import Foundation
import TestSupport
import Testing

@testable import StallReports
@testable import StallSymbols

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
