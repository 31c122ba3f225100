import CStalls
import Foundation
import Glibc
import Synchronization
import Testing

@testable import ScenarioKit
@testable import stallwatch_scenarios

@Suite struct ProcessHealthTests {
    private static let status = """
        Name:\tstallwatch-scenarios
        VmRSS:\t   69812 kB
        RssFile:\t   48308 kB
        Threads:\t17
        """

    @Test func theStatusFileIsRead() {
        let health = ProcessHealth(status: Self.status, memory: 21504, descriptors: 12, mappings: 400)
        #expect(health == .init(memory: 21504, resident: 69812, descriptors: 12, threads: 17, mappings: 400))
    }

    @Test(arguments: ["VmRSS", "Threads"])
    func aMissingLineIsNotZero(name: String) {
        let status = Self.status.replacing(name, with: "Other")
        #expect(ProcessHealth(status: status, memory: 0, descriptors: 0, mappings: 0) == nil)
    }

    @Test func thisProcessHasPositiveReadings() throws {
        let health = try ProcessHealth.now()
        #expect(health.memory > 100 && health.resident > health.memory)
        #expect(health.descriptors > 2 && health.threads > 0 && health.mappings > 10)
    }

    /// Growth needs a warm process and several readings.
    @Test func tooFewReadingsGiveNoGrowth() {
        var history = HealthHistory()
        for _ in 0..<20 { history.add(.some) }
        #expect(history.growth == nil)
        history.warmUpIsOver()
        for _ in 0..<5 { history.add(.some) }
        #expect(history.growth == nil)
        history.add(.some)
        #expect(history.growth == .init(memory: 0, descriptors: 0, threads: 0, mappings: 0))
    }

    @Test func fluctuationIsNoGrowth() throws {
        let readings = (0..<40).map { index in
            ProcessHealth.some.with {
                $0.memory += index % 3 * 40000
                $0.threads += index % 4 * 60
                $0.descriptors += index % 2
                $0.mappings += index % 5 * 100
            }
        }
        #expect(try growth(readings).problems == [])
    }

    @Test func descriptorsThatStayOpenAreALeak() throws {
        let readings = (0..<40).map { index in ProcessHealth.some.with { $0.descriptors += index / 30 + index % 2 } }
        // The additional descriptor exists for less than the later half, so the least of that half has not grown.
        #expect(try growth(readings).problems == [])
        let leaking = (0..<40).map { index in ProcessHealth.some.with { $0.descriptors += index / 4 + index % 2 } }
        #expect(try growth(leaking).descriptors == 5)
        #expect(try growth(leaking).problems == ["5 file descriptors more than before, where 4 may be"])
    }

    @Test func everyReadingIsJudged() throws {
        let margin = HealthGrowth.margin
        let readings = [ProcessHealth](repeating: .some, count: 10)
        let grown = readings.map { reading in
            reading.with {
                $0.memory += margin.memory + 1
                $0.descriptors += margin.descriptors + 1
                $0.threads += margin.threads + 1
                $0.mappings += margin.mappings + 1
            }
        }
        #expect(try growth(readings + grown).problems.count == 4)
        let allowed = readings.map { reading in
            reading.with {
                $0.memory += margin.memory
                $0.descriptors += margin.descriptors
                $0.threads += margin.threads
                $0.mappings += margin.mappings
            }
        }
        #expect(try growth(readings + allowed).problems == [])
    }

    private func growth(_ readings: [ProcessHealth]) throws -> HealthGrowth {
        var history = HealthHistory()
        history.warmUpIsOver()
        for reading in readings { history.add(reading) }
        return try #require(history.growth)
    }
}

extension ProcessHealth {
    fileprivate static let some = ProcessHealth(
        memory: 20000, resident: 70000, descriptors: 12, threads: 17, mappings: 400
    )

    fileprivate func with(_ change: (inout ProcessHealth) -> Void) -> ProcessHealth {
        var changed = self
        change(&changed)
        return changed
    }
}

@Suite struct ChaosTests {
    @Test(arguments: ChaosKind.allCases.filter { $0 != .clock })
    func everyKindOfActionSucceeds(kind: ChaosKind) {
        #expect(kind.act() == .done)
    }

    /// A wait until a moment of the wall clock must not overlap with a change of the clock.
    @Test func theScenariosWithLessChaosExist() {
        let names = Set(Scenario.all.map(\.name))
        #expect(Scenario.endingByTheWallClock.isSubset(of: names))
        #expect(Scenario.shortOfCPU.isSubset(of: names))
        #expect(Scenario.all.filter { $0.leftOut == [.clock] }.count == Scenario.endingByTheWallClock.count)
    }

    @Test func aPausedMakerDoesNothing() async {
        let actions = Actions()
        let maker = ChaosMaker("test", pause: 2, seed: 1) { actions.add() }
        await actions.reach(3)
        maker.leaveOut(true)
        let before = actions.value
        await pause(.milliseconds(50))
        #expect(actions.value == before)
        maker.leaveOut(false)
        await actions.reach(before + 3)
        #expect(maker.stop().done == actions.value)
    }

    @Test func aRefusedActionIsNotRepeated() async {
        let actions = Actions()
        let maker = ChaosMaker("test", pause: 2, seed: 1) {
            _ = actions.add()
            return .refused
        }
        await actions.reach(1)
        await pause(.milliseconds(50))
        #expect(actions.value == 1)
        #expect(maker.stop() == ChaosCount(done: 0, failed: 0, isRefused: true))
    }

    @Test func readOnlyFileMappingsAreFound() {
        let maps = """
            55d0c8a00000-55d0c8a21000 r-xp 00000000 08:02 173521                     /opt/app name
            55d0c8a21000-55d0c8a22000 rw-p 00021000 08:02 173521                     /opt/app name
            7f01c2000000-7f01c2021000 rw-p 00000000 00:00 0
            7ffd1d5f2000-7ffd1d5f4000 r-xp 00000000 00:00 0                          [vdso]
            7f01c3000000-7f01c3001000 r--p 00000000 08:02 9                          /usr/lib/libc.so.6
            """
        #expect(
            ColdStart.fileMappings(in: maps) == [
                0x55d0_c8a0_0000..<0x55d0_c8a2_1000, 0x7f01_c300_0000..<0x7f01_c300_1000,
            ]
        )
    }

    /// Shows that the witnesses can fail.
    @Test(arguments: 0..<STALLS_INTERRUPTIBLE_CALLS)
    func aSignalInterruptsEveryWitness(kind: Int32) async {
        let errors = await onThread("witness") { () -> [Int32] in
            var none = sigset_t()
            sigemptyset(&none)
            pthread_sigmask(SIG_SETMASK, &none, nil)
            let undisturbed = stalls_wait_interruptibly(kind, 20)
            signal(SIGWINCH) { _ in }
            let thread = pthread_self()
            Thread.detachNewThread {
                usleep(100_000)
                pthread_kill(thread, SIGWINCH)
            }
            return [undisturbed, stalls_wait_interruptibly(kind, 2000)]
        }
        #expect(errors == [0, EINTR], "\(String(cString: stalls_interruptible_call_name(kind)))")
    }
}

/// The number of actions.
private final class Actions: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .acquiring) }

    func add() -> ChaosResult {
        count.add(1, ordering: .releasing)
        return .done
    }

    /// Returns once there were `goal` actions.
    func reach(_ goal: Int) async {
        while value < goal { await pause(.milliseconds(1)) }
    }
}
