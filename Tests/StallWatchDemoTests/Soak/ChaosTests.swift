import CDemo
import Foundation
import Glibc
import Synchronization
import Testing

@testable import stallwatch_demo

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
    @Test(arguments: 0..<DEMO_INTERRUPTIBLE_CALLS)
    func aSignalInterruptsEveryWitness(kind: Int32) async {
        let errors = await onThread("witness") { () -> [Int32] in
            var none = sigset_t()
            sigemptyset(&none)
            pthread_sigmask(SIG_SETMASK, &none, nil)
            let undisturbed = demo_wait_interruptibly(kind, 20)
            signal(SIGWINCH) { _ in }
            let thread = pthread_self()
            Thread.detachNewThread {
                usleep(100_000)
                pthread_kill(thread, SIGWINCH)
            }
            return [undisturbed, demo_wait_interruptibly(kind, 2000)]
        }
        #expect(errors == [0, EINTR], "\(String(cString: demo_interruptible_call_name(kind)))")
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
