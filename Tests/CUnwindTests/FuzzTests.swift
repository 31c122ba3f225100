import CUnwind
import CUnwindTestSupport
import Testing

/// Stacks and registers that no compiler made: the unwinder ends each of them, keeps its rules and does not crash.
@Suite struct FuzzTests {
    @Test func aMillionDamagedStacksAreUnwound() {
        let result = cunwind_test_fuzz(20_261_121, 1_000_000)
        #expect(result.images == 1_000_000)
        #expect(result.broken == 0)
        // The damage really led somewhere: not all ended at once, and not all were whole.
        #expect(result.frames > result.images)
        #expect(result.by_end.0 < result.images)
        print("fuzz: \(result.frames) frames, ends \(result.by_end), slowest \(result.slowest_nanoseconds / 1000) us")
    }
}
