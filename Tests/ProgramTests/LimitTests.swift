import Foundation
import Glibc
import TestSupport
import Testing

@testable import StallReports

/// Programs near the limits of their memory and descriptors, and without the rights that they began with.
@Suite(.serialized) struct LimitTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private var reports: String { directory.path }

    /// The stalls of the test host's `main-stalls`.
    private static let mainStalls = 8
    /// Limits on the address space in KiB, and how often the program runs under each.
    ///
    /// Without a monitor it needs some 90,000, and 310,000 is where libdw ended most runs.
    private static let addresses = [(160_000, 2), (200_000, 2), (250_000, 2), (310_000, 8), (400_000, 2)]

    @Test(arguments: addresses)
    func `a limit on addresses ends no program`(kibibytes: Int, runs: Int) throws {
        let file = try directory.write("pages", [UInt8](repeating: 7, count: 1 << 20))
        for _ in 0..<runs {
            let host = try TestHost(
                ["main-stalls", reports, "50", "150", file], wrapper: ["prlimit", "--as=\(kibibytes << 10)"])
            let lines = host.finish()
            #expect(host.process.terminationReason == .exit && host.process.terminationStatus == 0, "\(lines)")
            #expect(lines.count { $0.hasPrefix("K ") } == Self.mainStalls)
        }
    }

    @Test func `captures of many threads keep no descriptors`() throws {
        let host = try TestHost(["many-threads", reports], wrapper: ["prlimit", "--nofile=128"])
        let counts = try #require(host.finish().last).split(separator: " ").compactMap { Int($0) }
        try #require(counts.count == 2)
        // A loop with a stall keeps the cgroup's two files of statistics open.
        #expect(counts[1] <= counts[0] + 2, "\(counts)")
        let report = try #require(try directory.reports().first)
        let stacks = report.otherThreads?.count { $0.stack != nil } ?? 0
        #expect(stacks >= 60, "\(stacks) of \(report.otherThreads?.count ?? 0) threads have a stack")
    }

    @Test func `near the limit of descriptors none is kept`() throws {
        let host = try TestHost(["many-threads", reports], wrapper: ["prlimit", "--nofile=26"])
        let lines = host.finish()
        #expect(host.process.terminationStatus == 0, "\(lines)")
        let counts = lines.last?.split(separator: " ").compactMap { Int($0) } ?? []
        // A loop with a stall keeps the cgroup's two files of statistics open.
        #expect(counts.count == 2 && counts[1] <= counts[0] + 2, "\(lines)")
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `after a change of the user blocked threads have stacks`() throws {
        let host = try TestHost(["drop-user", reports])
        #expect(host.finish().last == "S 1 0")
        let report = try #require(try directory.reports().first)
        #expect(report.samples.contains { $0.method == .read })
        #expect(report.cause?.kind == .sleep)
    }
}
