import Testing

@testable import LinuxSupport

@Suite struct ClockTests {
    @Test(
        arguments: [
            (.zero, 0), (.nanoseconds(1), 1), (.milliseconds(250), 250_000_000), (.seconds(86_400), 86_400_000_000_000),
            (.seconds(9_223_372_036), 9_223_372_036_000_000_000),
        ] as [(Duration, UInt64)])
    func aDurationConvertsToNanoseconds(duration: Duration, value: UInt64) {
        #expect(nanoseconds(duration) == value)
    }

    @Test func fractionsOfANanosecondAreDropped() {
        #expect(nanoseconds(Duration(secondsComponent: 1, attosecondsComponent: 1_999_999_999)) == 1_000_000_001)
    }

    @Test(arguments: [.nanoseconds(-1), .seconds(-1), .seconds(Int64.min)] as [Duration])
    func aNegativeDurationIsZero(duration: Duration) {
        #expect(nanoseconds(duration) == 0)
    }

    @Test(arguments: [.seconds(9_223_372_037), .seconds(Int64.max)] as [Duration])
    func aDurationOfCenturiesIsClamped(duration: Duration) {
        #expect(nanoseconds(duration) == UInt64(Int64.max))
    }
}
