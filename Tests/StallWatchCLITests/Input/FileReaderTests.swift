import Foundation
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct FileReaderTests {
    private func pipe(in directory: TemporaryDirectory) throws -> String {
        let path = directory.path("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        return path
    }

    @Test(.timeLimit(.minutes(1))) func `a pipe without a writer is given up`() throws {
        let directory = try TemporaryDirectory()
        let path = try pipe(in: directory)
        #expect(
            throws: CommandFailure(.nothing, "\(path) is a pipe that no program writes to: none came in 0 seconds.")
        ) {
            try FileReader(path: path, writerLimit: 0)
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a pipe is read to its end`() throws {
        let directory = try TemporaryDirectory()
        let path = try pipe(in: directory)
        // Opened for both, so that no side waits for the other.
        let writer = open(path, O_RDWR)
        try #require(writer >= 0)
        let reader = try FileReader(path: path, writerLimit: 0)
        try #require(write(writer, "reports", 7) == 7)
        #expect(try reader.read(100) == Array("reports".utf8))
        close(writer)
        #expect(try reader.read(100) == [])
    }
}
