import Testing

@testable import StackCapture

@Suite struct KernelPresenceTests {
    private func time(user: UInt64 = 5, system: UInt64 = 5) -> TickedCPUTime {
        TickedCPUTime(user: user, system: system)
    }

    @Test func `the last tick decides`() {
        var presence = KernelPresence(time(), turn: 1)
        presence.note(time(system: 6))
        #expect(presence.mayBeInKernel)
        presence.note(time(user: 6, system: 6))
        #expect(!presence.mayBeInKernel)
        presence.note(time(user: 7, system: 7))
        #expect(presence.mayBeInKernel, "either tick may be the last one")
    }

    /// It waits for a CPU: a stop would cut the call short in which it has been for long.
    @Test func `without a tick a thread stays where it was`() {
        var presence = KernelPresence(time(), turn: 1)
        presence.note(time(system: 6))
        for _ in 1...30 { presence.note(time(system: 6)) }
        #expect(presence.mayBeInKernel)
        presence.note(time(user: 6, system: 6))
        for _ in 1...30 { presence.note(time(user: 6, system: 6)) }
        #expect(!presence.mayBeInKernel)
    }

    @Test func `a thread without any tick in its turn may be in the kernel`() {
        var presence = KernelPresence(time(), turn: 1)
        presence.note(time(), turn: 1)
        #expect(presence.mayBeInKernel)
        #expect(KernelPresence(time(), turn: nil).mayBeInKernel)
    }

    @Test func `ticks of an earlier turn show nothing`() {
        var presence = KernelPresence(time(), turn: 1)
        presence.note(time(user: 6), turn: 1)
        #expect(!presence.mayBeInKernel)
        presence.note(time(user: 7), turn: 2)
        #expect(presence.mayBeInKernel, "nothing shows where the tick of turn 2 was")
        presence.note(time(user: 8), turn: 2)
        #expect(!presence.mayBeInKernel)
    }

    @Test func `a thread that was seen outside of calls is not in one`() {
        var presence = KernelPresence(time(), turn: nil)
        presence.noteUserMode()
        #expect(!presence.mayBeInKernel)
        presence.note(time(system: 6))
        #expect(presence.mayBeInKernel)
    }
}
