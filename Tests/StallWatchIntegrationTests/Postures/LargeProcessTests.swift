import Foundation
import TestSupport
import Testing

@testable import LinuxSupport

/// What a monitor costs a process with a gigabyte of memory under a seccomp filter, as in a container.
@Suite(.serialized) struct LargeProcessTests {
    /// The page faults that one step may cause; a copy of the process causes 262,144.
    private static let mostFaults = 2_000
    /// The time in which a step's page faults have happened, in seconds: the app writes all its memory ten times a second.
    private static let time = 2.0

    @Test func `a monitor copies no memory of the app`() throws {
        let directory = try TemporaryDirectory()
        let forbid = try Preload.forbid.make(in: directory)
        let host = try TestHost(
            ["control", directory.path, "large"], wrapper: ["FORBID_CALLS=nothing:1", "LD_PRELOAD=\(forbid)"])
        // The count before the monitor starts.
        let line = host.firstLine()
        var before = try #require(line.hasPrefix("F ") ? Int(line.dropFirst(2)) : nil)
        let stat = try #require(readSmallFile("/proc/\(host.pid)/status").flatMap(ProcessStatus.init))
        #expect(stat.seccompMode == 2)
        let isControlled = eventually { (try? Tool.run(["state", "\(host.pid)"])) != nil }
        #expect(isControlled)
        func faults(_ name: String) throws {
            Thread.sleep(forTimeInterval: Self.time)
            let text = try #require(readSmallFile("/proc/\(host.pid)/stat"))
            // Field 10 of proc_pid_stat(5); the first one behind the name is field 3.
            let fields = try #require(text.split(separator: ")").last).split(separator: " ")
            let now = try #require(Int(fields[7]))
            print("large process: \(name) caused \(now - before) page faults")
            #expect(now - before < Self.mostFaults, "\(name)")
            before = now
        }
        try faults("start")
        _ = try Tool.run(["stacks", "\(host.pid)"])
        try faults("stacks")
        _ = try Tool.run(["profile", "\(host.pid)", "--seconds", "1"])
        try faults("profile")
    }
}
