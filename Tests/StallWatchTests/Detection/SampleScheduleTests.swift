import Testing

@testable import StallWatch

@Suite struct SampleScheduleTests {
    /// The ages at which a stall is sampled if every poll is on time.
    private func ages(_ schedule: SampleSchedule, threshold: UInt64) -> [UInt64] {
        var ages = [threshold]
        while let last = ages.last, let next = schedule.next(after: ages.count, age: last) { ages.append(next) }
        return ages
    }

    @Test func intervalsGrow() {
        let milliseconds = ages(.standard, threshold: 250_000_000).prefix(7).map { Int((Double($0) / 1e6).rounded()) }
        #expect(milliseconds == [250, 375, 563, 844, 1_266, 1_898, 2_848])
    }

    @Test(arguments: [1, 2, 20])
    func theBudgetIsKept(budget: Int) {
        #expect(ages(SampleSchedule(budget: budget, growth: 1.5), threshold: 100).count == budget)
    }

    @Test func twentySamplesLastForNineMinutesAtTheDefaultThreshold() throws {
        let last = try #require(ages(.standard, threshold: 250_000_000).last)
        #expect((540...560).contains(last / 1_000_000_000))
    }

    @Test func ageHasALimitAndDoesNotOverflow() {
        let schedule = SampleSchedule(budget: 20, growth: 1.5)
        #expect(schedule.next(after: 1, age: .max) == SampleSchedule.maximumAge)
        #expect(schedule.next(after: 1, age: SampleSchedule.maximumAge) == SampleSchedule.maximumAge)
    }
}
