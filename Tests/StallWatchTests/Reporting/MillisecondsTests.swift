import Testing

@testable import StallWatch

@Suite struct MillisecondsTests {
    @Test(
        arguments: [
            (0, 0), (499, 0), (500, 0.001), (1_000_000, 1), (250_400_499, 250.4), (250_400_500, 250.401),
        ] as [(UInt64, Double)])
    func nanosecondsAreRoundedToTheMicrosecond(nanoseconds: UInt64, expected: Double) {
        #expect(milliseconds(nanoseconds) == expected)
    }

    @Test func theLongestTimeDoesNotTrap() {
        #expect(milliseconds(.max) > 1e13)
    }
}
