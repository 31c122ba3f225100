import CUnwindTestSupport
import Testing

/// A read is valid only if the thread did not run during it.
@Suite(.serialized) struct ReadProofTests {
    @Test(arguments: [true, false])
    func `a valid read is never torn`(countsSlices: Bool) {
        let result = cunwind_test_read_proof(countsSlices, 3000)
        print("read proof: \(result)")
        #expect(result.counted_slices == countsSlices, "a kernel without CONFIG_SCHEDSTATS counts none")
        #expect(result.valid > 0)
        #expect(result.torn_valid == 0)
        // Without the check these reads would count as valid.
        #expect(result.torn_refused > 0)
    }
}
