import Foundation
import Glibc
import TestSupport
import Testing

/// The demo where fsync(2) is refused, as by some file systems and container profiles.
@Suite(.serialized) struct RefusedFlushTests {
    @Test(arguments: [EPERM, EINVAL, ENOSYS])
    func `reports are written where fsync is refused`(error: Int32) throws {
        let directory = try TemporaryDirectory()
        let reports = directory.path("reports")
        let result = try Command(
            program: try Command.product("stallwatch-demo"),
            arguments: ["--scenario", "sleep", "--quiet", "--output", reports],
            environment: [
                "LD_PRELOAD": try Preload.forbid.make(in: directory),
                "FORBID_CALLS": "fsync:\(error),fdatasync:\(error)",
            ]
        ).run()
        #expect(result.reason == .exit && result.status == 0, "\(result.text)")
        let files = try FileManager.default.contentsOfDirectory(atPath: reports)
        #expect(files.contains { $0.hasSuffix(".json") })
        #expect(!files.contains { $0.hasSuffix(".tmp") })
    }
}
