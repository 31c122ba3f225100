import Foundation
import LinuxSupport
import StallReports
import Testing
import TestSupport

/// Reports that cannot be written are counted, and written later if they can be.
@Suite(.serialized) struct UnwritableReportsTests {
    private let scratch = TemporaryDirectory.ofTest()

    @Test(.enabled(if: ownMounts != nil, "needs root or user namespaces"))
    func aFullDiskAndADeletedDirectoryLoseNothing() throws {
        let host = try TestHost(["full-disk", scratch.path], wrapper: #require(ownMounts))
        let lines = host.finish().filter { !$0.hasPrefix("B ") && !$0.hasPrefix("E ") && $0.count > 1 }
        #expect(host.process.terminationStatus == 0)
        #expect(
            lines == [
                "full: reports 1, failures true", "free: reports 3", "deleted: reports 1, temporary 0",
                "stalls 4, lost 0",
            ]
        )
    }

    /// Needs no right: no file may be larger than a few bytes.
    @Test func filesThatCannotGrowAreCountedAsFailures() throws {
        let host = try TestHost(["small-files", scratch.path])
        let lines = host.finish().filter { !$0.hasPrefix("B ") && !$0.hasPrefix("E ") && $0.count > 1 }
        #expect(host.process.terminationStatus == 0)
        #expect(lines == ["small: reports 0, failures true", "large: reports 1, temporary 0", "stalls 1, lost 0"])
    }
}

/// The unshare(1) command that gives a process its own mounts; `nil` if the system does not permit it.
private let ownMounts: [String]? = [["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]].first {
    wrapper in
    guard let scratch = try? TemporaryDirectory(),
        let host = try? TestHost(["can-mount", scratch.path], wrapper: wrapper)
    else {
        return false
    }
    _ = host.finish()
    return host.process.terminationStatus == 0
}
