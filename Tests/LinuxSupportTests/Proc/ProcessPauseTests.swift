import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct ProcessPauseTests {
    @Test(
        arguments: [
            (["T", "T"], .signal), (["t", "t"], .debugger), (["Z", "T", "T"], .signal), (["t", "T"], .signal),
            (["T", "S"], nil), (["S"], nil), ([], nil), (["Z"], nil),
        ] as [([String], ProcessPause?)])
    func `a process is paused if all its threads are`(states: [String], pause: ProcessPause?) {
        #expect(ProcessPause.ofThreads(states) == pause)
    }

    @Test func `a stopped process is found, and one that goes on`() throws {
        let process = Command(program: "/bin/sleep", arguments: ["60"]).process()
        try process.run(atMost: 60)
        defer { process.kill() }
        let pid = process.processIdentifier
        #expect(ProcessPause.of(pid) == nil)
        kill(pid, SIGSTOP)
        #expect(eventually { ProcessPause.of(pid) == .signal })
        kill(pid, SIGCONT)
        #expect(eventually { ProcessPause.of(pid) == nil })
    }

    @Test func `no process is not paused`() {
        #expect(ProcessPause.of(0x3fff_fff0) == nil)
    }

    @Test func `both versions of cgroups have a file`() {
        #expect(
            ProcessPause.freezerFiles("0::/system.slice/a.service\n") == [
                "/sys/fs/cgroup/system.slice/a.service/cgroup.events"
            ])
        #expect(
            ProcessPause.freezerFiles("7:freezer:/docker/1\n3:cpu,cpuacct:/x\n1:name=systemd:/y\n") == [
                "/sys/fs/cgroup/freezer/docker/1/freezer.state"
            ])
        #expect(ProcessPause.freezerFiles("nonsense") == [])
        #expect(ProcessPause.saysFrozen("populated 1\nfrozen 1\n"))
        #expect(!ProcessPause.saysFrozen("populated 1\nfrozen 0\n"))
        #expect(ProcessPause.saysFrozen("FROZEN\n"))
        #expect(!ProcessPause.saysFrozen("THAWED\n"))
    }
}
