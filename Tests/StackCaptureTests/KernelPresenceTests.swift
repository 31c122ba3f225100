import Testing

@testable import StackCapture

@Suite struct KernelPresenceTests {
    private func ticks(user: UInt64 = 5, system: UInt64 = 5, milliseconds: UInt64) -> CPUTicks {
        CPUTicks(user: user, system: system, readAt: milliseconds * 1_000_000)
    }

    @Test func `the last tick decides`() {
        var presence = KernelPresence(ticks(milliseconds: 100), turn: 1)
        #expect(!presence.mayBeInKernel)
        presence.note(ticks(system: 6, milliseconds: 105))
        #expect(presence.mayBeInKernel)
        presence.note(ticks(user: 6, system: 6, milliseconds: 115))
        #expect(!presence.mayBeInKernel)
        presence.note(ticks(user: 7, system: 7, milliseconds: 135))
        #expect(presence.mayBeInKernel)
    }

    /// It waits for a CPU: a stop would cut the call short in which it has been for long.
    @Test func `without a tick a thread stays where it was`() {
        var presence = KernelPresence(ticks(milliseconds: 100), turn: 1)
        presence.note(ticks(system: 6, milliseconds: 105))
        for later in 1...30 { presence.note(ticks(system: 6, milliseconds: 105 + UInt64(later) * 10)) }
        #expect(presence.mayBeInKernel)
        presence.note(ticks(user: 6, system: 6, milliseconds: 500))
        for later in 1...30 { presence.note(ticks(user: 6, system: 6, milliseconds: 500 + UInt64(later) * 10)) }
        #expect(!presence.mayBeInKernel)
    }

    @Test func `a thread without any tick in its turn may be in the kernel`() {
        var presence = KernelPresence(ticks(milliseconds: 100), turn: 1)
        presence.note(ticks(milliseconds: 115), turn: 1)
        #expect(!presence.mayBeInKernel, "it may have run since, for less than one tick")
        presence.note(ticks(milliseconds: 116))
        #expect(presence.mayBeInKernel)
        #expect(KernelPresence(ticks(milliseconds: 100), turn: nil).mayBeInKernel)
    }

    @Test func `ticks of an earlier turn show nothing`() {
        var presence = KernelPresence(ticks(milliseconds: 100), turn: 1)
        presence.note(ticks(system: 6, milliseconds: 110), turn: 1)
        #expect(presence.mayBeInKernel)
        presence.note(ticks(system: 7, milliseconds: 130), turn: 2)
        #expect(!presence.mayBeInKernel)
        presence.note(ticks(user: 6, system: 7, milliseconds: 140), turn: 2)
        presence.note(ticks(user: 6, system: 7, milliseconds: 160), turn: 3)
        presence.note(ticks(user: 6, system: 7, milliseconds: 176))
        #expect(presence.mayBeInKernel, "the new turn has got no CPU")
    }

    @Test func `a thread that was seen outside of calls is not in one`() {
        var presence = KernelPresence(ticks(milliseconds: 100), turn: nil)
        presence.noteUserMode()
        #expect(!presence.mayBeInKernel)
        presence.note(ticks(system: 6, milliseconds: 120))
        #expect(presence.mayBeInKernel)
    }
}
