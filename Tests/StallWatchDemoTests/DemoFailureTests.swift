import Foundation
import Glibc
import StallWatch
import Testing

@testable import stallwatch_demo

@Suite struct DemoFailureTests {
    @Test(
        arguments: [
            (ENOSPC, 74), (EDQUOT, 74), (EIO, 74), (EFBIG, 74), (EACCES, 73), (EROFS, 73), (ENOENT, 73), (ENOTDIR, 73),
        ] as [(Int32, Int32)])
    func theStatusTellsAFullDiskFromAWrongPath(error: Int32, status: Int32) {
        #expect(DemoFailure("a file", errno: error).status.rawValue == status)
    }

    @Test func anOutputPathThatIsAFileCannotBeMade() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "file-" + UUID().uuidString).path
        try Data().write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(.init(reports: .directory(path))) }
        let failure = error.map { DemoFailure($0) }
        #expect(failure?.status == .cannotCreate)
        #expect(failure?.sentence.contains(path) == true)
    }
}
