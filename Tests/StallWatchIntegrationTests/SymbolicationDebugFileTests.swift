import Foundation
import Testing

@testable import StallWatch

/// A stripped executable and its debug file say together what the unstripped one says alone.
@Suite("Debug files", .enabled(if: SymbolicationToolchain.isComplete), .serialized)
struct SymbolicationDebugFileTests {
    @Test("found by build ID")
    func byBuildID() throws {
        let parts = try Parts()
        let directory = try parts.directory("by-id")
        let path = "\(directory)/.build-id/\(parts.buildID.prefix(2))/\(parts.buildID.dropFirst(2)).debug"
        try place(parts.debugFile, at: path)
        try expectSame(parts, StallReport.DebugSources(directories: [directory]))
    }

    @Test("found by the name in .gnu_debuglink, beside the image")
    func byDebugLink() throws {
        let parts = try Parts()
        let directory = try parts.directory("linked")
        try place(parts.stripped, at: "\(directory)/mixed")
        try place(parts.debugFile, at: "\(directory)/.debug/mixed.debug")
        let report = parts.report(imageAt: "\(directory)/mixed")
        let named = report.symbolicated(with: StallReport.DebugSources())
        #expect(named.frames == (try parts.expected()).frames)
    }

    @Test("found by .gnu_debuglink's checksum where there is no build ID, and only then")
    func byChecksum() throws {
        let parts = try Parts()
        let directory = try parts.directory("checksum")
        for (part, name) in [(parts.stripped, "mixed"), (parts.debugFile, "mixed.debug")] {
            try SymbolicationToolchain.run(
                "llvm-objcopy", ["--remove-section=.note.gnu.build-id", part, "\(directory)/\(name)"]
            )
        }
        try SymbolicationToolchain.run("llvm-objcopy", ["--remove-section=.gnu_debuglink", "\(directory)/mixed"])
        try SymbolicationToolchain.run(
            "llvm-objcopy", ["--add-gnu-debuglink=\(directory)/mixed.debug", "\(directory)/mixed"]
        )
        let report = parts.report(imageAt: "\(directory)/mixed", buildID: nil)
        #expect(report.symbolicated(with: StallReport.DebugSources()).frames == (try parts.expected()).frames)
        // One byte more, and the checksum is another.
        let handle = try #require(FileHandle(forWritingAtPath: "\(directory)/mixed.debug"))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data([0]))
        try handle.close()
        let unnamed = report.symbolicated(with: StallReport.DebugSources())
        #expect(unnamed.frames.allSatisfy { $0.file == nil })
        #expect(unnamed.images.allSatisfy { $0.reason == "no debug information was found" })
    }

    @Test("a debug file of another build is not used")
    func wrongBuild() throws {
        let parts = try Parts()
        let directory = try parts.directory("wrong")
        try place(parts.debugFile, at: "\(directory)/mixed.debug")
        let other = String(parts.buildID.reversed())
        let report = parts.report(imageAt: "/nowhere/mixed", buildID: other)
        let named = report.symbolicated(with: StallReport.DebugSources(directories: [directory]))
        #expect(named.frames == report.frames)
        #expect(named.images.allSatisfy { $0.reason?.contains("No such file") == true })
    }

    @Test("symbolicating twice changes nothing")
    func isIdempotent() throws {
        let parts = try Parts()
        let once = try parts.expected()
        #expect(once.symbolicated(with: StallReport.DebugSources()) == once)
        // Nor does it take away what is known when the files are gone.
        var elsewhere = once
        for index in elsewhere.images.indices { elsewhere.images[index].path = "/nowhere/mixed" }
        #expect(elsewhere.symbolicated(with: StallReport.DebugSources()).frames == once.frames)
    }

    private func expectSame(_ parts: Parts, _ sources: StallReport.DebugSources) throws {
        let named = parts.report(imageAt: parts.stripped).symbolicated(with: sources)
        let expected = try parts.expected()
        #expect(named.frames == expected.frames)
        #expect(named.stacks == expected.stacks)
        #expect(named.culprit?.function == expected.culprit?.function)
        #expect(named.culprit?.line == expected.culprit?.line)
        #expect(named.images.map(\.reason) == [nil])
        #expect(expected.frames.contains { $0.isInlined == true && $0.line != nil })
    }

    private func place(_ file: String, at path: String) throws {
        let manager = FileManager.default
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        try manager.createDirectory(atPath: directory, withIntermediateDirectories: true)
        if manager.fileExists(atPath: path) { try manager.removeItem(atPath: path) }
        try manager.copyItem(atPath: file, toPath: path)
    }
}

/// The mixed executable, taken apart.
private struct Parts {
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
        var generator = SplitMix64(seed: 1)
        sites = Array(try CallSites.all(in: whole).shuffled(using: &generator).prefix(60))
    }

    func directory(_ name: String) throws -> String {
        let path = "\(SymbolicationToolchain.scratch)/\(name)"
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    /// A report of an unnamed stack, as a stripped program writes it.
    func report(imageAt path: String, buildID: String?) -> StallReport {
        SymbolicationReport.make(imageAt: path, buildID: buildID, offsets: sites)
    }

    func report(imageAt path: String) -> StallReport { report(imageAt: path, buildID: buildID) }

    /// What the unstripped executable gives.
    func expected() throws -> StallReport {
        report(imageAt: whole).symbolicated(with: StallReport.DebugSources())
    }
}
