@testable import StallSymbols
import Foundation
import Testing

@testable import StallReports

/// A stripped executable with its debug file gives the same result as the unstripped one.
@Suite("Debug files", .needsToolchain, .serialized)
struct SymbolicationDebugFileTests {
    @Test("found by build ID")
    func byBuildID() throws {
        let parts = try SymbolicationParts()
        let directory = try parts.directory("by-id")
        let path = "\(directory)/.build-id/\(parts.buildID.prefix(2))/\(parts.buildID.dropFirst(2)).debug"
        try place(parts.debugFile, at: path)
        // Use a separate directory, where .gnu_debuglink finds no file.
        try place(parts.stripped, at: "\(directory)/bin/mixed")
        let report = parts.report(imageAt: "\(directory)/bin/mixed")
        try parts.expectWhole(report.symbolicated(with: StallReport.DebugSources(directories: [directory])))
        let unnamed = report.symbolicated(with: StallReport.DebugSources())
        #expect(unnamed.images.map(\.reason) == ["no debug information was found"])
    }

    @Test("found by the name in .gnu_debuglink, beside the image")
    func byDebugLink() throws {
        let parts = try SymbolicationParts()
        let directory = try parts.directory("linked")
        try place(parts.stripped, at: "\(directory)/mixed")
        try place(parts.debugFile, at: "\(directory)/.debug/mixed.debug")
        let report = parts.report(imageAt: "\(directory)/mixed")
        try parts.expectWhole(report.symbolicated(with: StallReport.DebugSources()))
    }

    @Test("found by .gnu_debuglink's checksum where there is no build ID, and only then")
    func byChecksum() throws {
        let parts = try SymbolicationParts()
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
        // One more byte changes the checksum.
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
        let parts = try SymbolicationParts()
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
        let parts = try SymbolicationParts()
        let once = try parts.expected()
        #expect(once.symbolicated(with: StallReport.DebugSources()) == once)
        // Symbolication without the files keeps the known names.
        var elsewhere = once
        for index in elsewhere.images.indices { elsewhere.images[index].path = "/nowhere/mixed" }
        #expect(elsewhere.symbolicated(with: StallReport.DebugSources()).frames == once.frames)
    }

    private func place(_ file: String, at path: String) throws {
        let manager = FileManager.default
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        try manager.createDirectory(atPath: directory, withIntermediateDirectories: true)
        if manager.fileExists(atPath: path) { try manager.removeItem(atPath: path) }
        try manager.copyItem(atPath: file, toPath: path)
    }
}
