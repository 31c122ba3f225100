import CUnwind
import CUnwindTestSupport
import Foundation
import Testing

/// The unwinder survives damaged stacks, registers and unwind tables.
@Suite struct FuzzTests {
    static let fixedSeed: UInt64 = 20_261_121

    /// The seed: `STALLWATCH_FUZZ_SEED`, else the day in continuous integration (`CI`), else a fixed number.
    static func seed(from environment: [String: String]) -> UInt64 {
        if let chosen = environment["STALLWATCH_FUZZ_SEED"].flatMap({ UInt64($0) }) { return chosen }
        return environment["CI"] == nil ? fixedSeed : UInt64(Date().timeIntervalSince1970 / 86_400)
    }

    /// A fifth of a million, or with `STALLWATCH_FUZZ_WHOLE=1` all.
    ///
    /// Each with libunwind and by the built-in stepper alone. A damaged stack leads them through sound tables, so they agree.
    @Test func `a million damaged stacks are unwound`() {
        let seed = Self.seed(from: ProcessInfo.processInfo.environment)
        let count: UInt64 = UnwinderTests.isWhole ? 1_000_000 : 200_000
        print("fuzz: seed \(seed); repeat with STALLWATCH_FUZZ_SEED=\(seed)")
        let result = cunwind_test_fuzz(seed, count)
        #expect(result.images == count)
        #expect(result.has_library == UnwinderTests.hasLibrary)
        #expect(result.disagreements == 0, "seed \(seed)")
        #expect(result.broken == 0, "seed \(seed)")
        // Some stacks have several frames, and some are damaged.
        #expect(result.frames > result.images)
        #expect(result.by_end.0 < result.images)
        print("fuzz: \(result.frames) frames, ends \(result.by_end), slowest \(result.slowest_nanoseconds / 1000) us")
    }

    @Test func `damaged unwind tables end in no frame or a sound one`() {
        let seed = Self.seed(from: ProcessInfo.processInfo.environment)
        let count: UInt64 = UnwinderTests.isWhole ? 1_000_000 : 100_000
        let result = cunwind_test_fuzz_tables(seed, count)
        print("fuzz: tables, seed \(seed): \(result)")
        #expect(result.tables == count)
        #expect(result.found > 0)
        #expect(result.steps > 0)
        #expect(result.refused > 0)
    }
}
