import StallReports
import Testing

@testable import StallWatchCLI

@Suite struct TurnStripTests {
    private func turn(_ at: Double, _ duration: Double) -> StallReport.Turn {
        StallReport.Turn(atMilliseconds: at, durationMilliseconds: duration, waitedMilliseconds: 0)
    }

    @Test func eachCellHasTheShareOfItsTime() {
        let strip = TurnStrip([turn(-100, 50), turn(0, 100)], over: -200...200, cells: 4)
        #expect(strip.shares == [0, 0.5, 1, 0])
        #expect(strip.text == "·▓█·")
    }

    @Test func partsOutsideOfThePeriodDoNotCount() {
        let strip = TurnStrip([turn(-1_000, 910), turn(90, 1_000)], over: -100...100, cells: 2)
        #expect(strip.shares.map { ($0 * 100).rounded() } == [10, 10])
        #expect(strip.text == "░░")
    }

    @Test func overlappingTurnsFillACellOnce() {
        #expect(TurnStrip([turn(0, 10), turn(0, 10)], over: 0...10, cells: 1).shares == [1])
    }
}
