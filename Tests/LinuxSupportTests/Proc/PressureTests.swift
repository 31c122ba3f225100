import Testing

@testable import LinuxSupport

@Suite struct PressureTests {
    @Test func theTenSecondAverageIsRead() {
        let text =
            "some avg10=6.44 avg60=5.83 avg300=6.07 total=51403076\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        #expect(Pressure.average(in: text) == 6.44)
        #expect(Pressure.average(in: "") == nil)
    }
}
