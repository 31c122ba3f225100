import Testing

@testable import StallWatch

@Suite struct LoopProgressTests {
    private func loop(_ label: String, _ state: LoopProgress.State, _ since: UInt64 = 1) -> LoopProgress {
        LoopProgress(label: label, state: state, since: since)
    }

    @Test func `of two monitors of a loop the worse state counts`() {
        #expect(
            LoopProgress.merged([
                loop("main", .starting), loop("worker", .running), loop("main", .running, 5),
                loop("worker", .stalled, 7),
            ]) == [loop("main", .running, 5), loop("worker", .stalled, 7)])
        #expect(LoopProgress.merged([loop("a", .stalled), loop("a", .held)]) == [loop("a", .stalled)])
        #expect(LoopProgress.merged([loop("a", .ended), loop("a", .running)]) == [loop("a", .running)])
    }

    @Test func `of equal states the older one counts`() {
        #expect(LoopProgress.merged([loop("a", .stalled, 9), loop("a", .stalled, 3)]) == [loop("a", .stalled, 3)])
        #expect(LoopProgress.merged([loop("a", .stalled, 3), loop("a", .stalled, 9)]) == [loop("a", .stalled, 3)])
    }

    @Test func `no loop has no progress`() {
        #expect(LoopProgress.merged([]) == [])
    }
}
