import Foundation
import Glibc
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct OutputFileTests {
    private struct Failure: Error {}

    @Test func aFileIsWrittenAtomically() throws {
        let scratch = try TemporaryDirectory()
        let path = scratch.path + "/file"
        try OutputFile(path: path).write { put in
            try put(Array("one ".utf8))
            #expect(access(path, F_OK) != 0)
            try put(Array("two".utf8))
        }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "one two")
        #expect(scratch.names == ["file"])
    }

    @Test func aFailedWriteKeepsTheOldFile() throws {
        let scratch = try TemporaryDirectory()
        let path = try scratch.write("file", "old")
        #expect(throws: Failure.self) {
            try OutputFile(path: path).write { put in
                try put(Array("half".utf8))
                throw Failure()
            }
        }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "old")
        #expect(scratch.names == ["file"])
    }

    @Test func aLinksTargetIsReplacedAndKeepsItsPermissions() throws {
        let scratch = try TemporaryDirectory()
        let path = try scratch.write("file", "old")
        #expect(chmod(path, 0o604) == 0)
        #expect(symlink("file", scratch.path + "/link") == 0)
        try OutputFile(path: scratch.path + "/link").write(Array("new".utf8))
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "new")
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o604)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: scratch.path + "/link") == "file")
    }

    @Test func aDirectoryIsRefused() throws {
        let scratch = try TemporaryDirectory()
        #expect(
            throws: CommandFailure(
                .cannotCreate, "\(scratch.path) is not a regular file. Name another file for the output.")
        ) {
            try OutputFile(path: scratch.path)
        }
        #expect(throws: CommandFailure(.cannotCreate, "The output path is empty. Name a file.")) {
            try OutputFile(path: "")
        }
        #expect(
            throws: CommandFailure(.cannotCreate, "\(scratch.path)/a/b cannot be written: No such file or directory")
        ) {
            try OutputFile(path: scratch.path + "/a/b").write([])
        }
    }

    /// SIGTERM during writing leaves no temporary file, and each report is whole.
    ///
    /// SIGTERM is handled like Ctrl-C, which background jobs of a shell ignore.
    @Test func anInterruptionLeavesNoPartialFile() throws {
        let scratch = try TemporaryDirectory()
        let lines = (0..<3_000).map { ReportFixture(number: $0).line }.joined()
        let input = try scratch.write("stalls.ndjson", lines)
        let process = try Tool.command(["symbolicate", input, "--output", scratch.path + "/named"]).process()
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run(atMost: Process.timeout)
        let named = scratch.path + "/named"
        func count() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: named))?.count ?? 0 }
        while count() < 20, process.isRunning { usleep(1_000) }
        process.terminate()
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGTERM)
        let names = try FileManager.default.contentsOfDirectory(atPath: named)
        #expect(names.allSatisfy { $0.hasPrefix("stall-") && $0.hasSuffix(".json") })
        #expect(try Tool.run(["validate", named]).output == "\(names.count) valid, 0 faulty\n")
    }
}
