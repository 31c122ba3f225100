import Glibc
import Testing

@testable import LinuxSupport

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
