import TestSupport
import Testing

@testable import StallWatch

@Suite struct SampleWeightsTests {
    private typealias Sighting = SampleWeights.Sighting

    @Test func aSightingEndsHalfWayToTheNextOne() {
        let sightings = [Sighting(from: 30, to: 30), Sighting(from: 50, to: 50), Sighting(from: 90, to: 90)]
        #expect(SampleWeights.weights(sightings, duration: 100) == [40, 30, 30])
    }

    @Test func onlyTheTimeBetweenSightingsIsDivided() {
        let sightings = [Sighting(from: 30, to: 210), Sighting(from: 230, to: 300)]
        #expect(SampleWeights.weights(sightings, duration: 310) == [220, 90])
    }

    /// The thread slept, and then used 15 of the 20 ns between the sightings.
    @Test func theUsedTimeBelongsToTheSightingInWhichTheThreadRan() {
        let asleep = Sighting(from: 30, to: 210, used: (5, 5))
        let running = Sighting(from: 230, to: 230, isRunning: true, used: (20, 20))
        #expect(SampleWeights.weights([asleep, running], duration: 300) == [215, 85])
        let later = Sighting(from: 230, to: 230, used: (20, 20))
        let first = Sighting(from: 30, to: 210, isRunning: true, used: (5, 5))
        #expect(SampleWeights.weights([first, later], duration: 300) == [225, 75])
    }

    @Test func moreUsedTimeThanPassedCountsAsAllOfIt() {
        let running = Sighting(from: 10, to: 10, isRunning: true, used: (0, 0))
        let asleep = Sighting(from: 20, to: 20, used: (999, 999))
        #expect(SampleWeights.weights([running, asleep], duration: 30) == [20, 10])
    }

    @Test func noObservationsHaveNoWeights() {
        #expect(SampleWeights.weights([], duration: 30).isEmpty)
        #expect(SampleWeights.weights([Sighting(from: 50, to: 60)], duration: 30) == [30])
    }

    @Test func weightsAlwaysAddUp() {
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<1_000 {
            var age: UInt64 = 0
            let sightings = (0..<Int.random(in: 1...8, using: &generator)).map { _ in
                let from = age + UInt64.random(in: 0...50, using: &generator)
                age = from + UInt64.random(in: 0...50, using: &generator)
                let used = UInt64.random(in: 0...300, using: &generator)
                return Sighting(
                    from: from, to: age, isRunning: .random(using: &generator),
                    used: Bool.random(using: &generator) ? (used, used) : nil)
            }
            let duration = UInt64.random(in: 0...400, using: &generator)
            #expect(SampleWeights.weights(sightings, duration: duration).reduce(0, +) == duration)
        }
    }
}
