import Foundation
import Glibc
import StallReports
import StallWatch
import TestSupport
import Testing

@testable import stallwatch_demo

@Suite struct DemoFailureTests {
    @Test(
        arguments: [
            (ENOSPC, 74), (EDQUOT, 74), (EIO, 74), (EFBIG, 74), (EACCES, 73), (EROFS, 73), (ENOENT, 73), (ENOTDIR, 73),
        ] as [(Int32, Int32)])
    func aFullDiskAndAWrongPathDifferInStatus(error: Int32, status: Int32) {
        #expect(DemoFailure("a file", errno: error).status.rawValue == status)
    }

    @Test func aFileCannotBeTheOutputDirectory() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("file", "")
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(.init(reports: .directory(path))) }
        let failure = error.map { DemoFailure($0) }
        #expect(failure?.status == .cannotCreate)
        #expect(failure?.sentence.contains(path) == true)
    }
}
