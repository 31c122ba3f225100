import Foundation
import Glibc
import Testing
import TestSupport

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

@Suite struct RunningProcessTests {
    private func process(_ id: Int32, of parent: Int32) -> RunningProcess {
        RunningProcess(id: id, parent: parent, command: "p", state: "S", startTicks: 0)
    }

    @Test func `descendants are found over several generations`() {
        let all = [process(1, of: 0), process(5, of: 4), process(4, of: 2), process(2, of: 1), process(3, of: 1)]
        #expect(RunningProcess.descendants(of: 2, among: all).map(\.id) == [4, 5])
        #expect(RunningProcess.descendants(of: 1, among: all).map(\.id) == [2, 3, 4, 5])
        #expect(RunningProcess.descendants(of: 3, among: all).isEmpty)
    }

    /// The list is not of one moment, so a reused id may seem to be its own ancestor.
    @Test func `a cycle ends`() {
        let all = [process(2, of: 3), process(3, of: 2)]
        #expect(RunningProcess.descendants(of: 2, among: all).map(\.id) == [3])
    }

    @Test func `this process is found`() throws {
        let own = try #require(RunningProcess(id: getpid()))
        #expect(own.parent == getppid())
        #expect(!own.command.isEmpty)
        #expect(RunningProcess.all().contains { $0.id == getpid() && $0.startTicks == own.startTicks })
        #expect(RunningProcess(id: 0x3fff_fff0) == nil)
    }
}
