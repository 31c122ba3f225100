import StallReports
import Testing

@testable import StallWatchCLI

@Suite struct StallWeightsTests {
    private func shares(_ milliseconds: Double, _ samples: [StackFixture.Sample]) throws -> [StallWeights.Share] {
        StallWeights.shares(of: try StackFixture.report(milliseconds, samples))
    }

    @Test func oneSampleCountsForTheWholeStall() throws {
        #expect(try shares(600, [.init(at: 250, stack: ["work"])]).map(\.microseconds) == [600_000])
    }

    @Test func aMomentCountsForTheNearestSample() throws {
        let found = try shares(
            1_200,
            [.init(at: 250, stack: ["a"]), .init(at: 500, stack: ["b"]), .init(at: 1_000, stack: ["c"])]
        )
        #expect(found.map(\.microseconds) == [375_000, 375_000, 450_000])
        #expect(found.map(\.stack) == [0, 1, 2])
    }

    @Test func aSampleCountsForTheTimeThatTheReportSays() throws {
        var report = try StackFixture.report(1_000, [.init(at: 250, stack: ["a"]), .init(at: 900, stack: ["b"])])
        for (index, weight) in [800.0, 200].enumerated() { report.samples[index].weightMilliseconds = weight }
        #expect(StallWeights.shares(of: report).map(\.microseconds) == [800_000, 200_000])
        for index in 0...1 { report.samples[index].weightMilliseconds = 300 }
        #expect(StallWeights.shares(of: report).map(\.microseconds) == [500_000, 500_000], "the sum is the duration")
    }

    @Test func anInvalidSampleCountsOnlyAlone() throws {
        let late = StackFixture.Sample(at: 900, stack: ["later"], isValid: false)
        let both = try shares(900, [.init(at: 250, stack: ["work"]), late])
        #expect(both.map(\.stack) == [0])
        #expect(both.map(\.microseconds) == [900_000])
        #expect(try shares(900, [late]) == [.init(stack: nil, isComplete: true, microseconds: 900_000)])
    }

    @Test func timeWithoutAStackKeepsItsShare() throws {
        #expect(try shares(300, []) == [.init(stack: nil, isComplete: true, microseconds: 300_000)])
        let found = try shares(1_000, [.init(at: 250, stack: nil), .init(at: 750, stack: ["work"])])
        #expect(found.map(\.stack) == [nil, 0])
        #expect(found.map(\.microseconds) == [500_000, 500_000])
    }

    @Test func workersOfAPoolCountEqually() throws {
        let found = try shares(
            0.1,
            [.init(at: 0.05, stack: nil, workers: [(["busy"], 3), (["idle"], 3), (nil, 1)])]
        )
        #expect(found.map(\.microseconds) == [42, 43, 15])
        #expect(found.map(\.stack) == [0, 1, nil])
    }

    @Test func samplesAfterTheEndCountAtTheEnd() throws {
        let found = try shares(300, [.init(at: 250, stack: ["a"]), .init(at: 400, stack: ["b"])])
        #expect(found.map(\.microseconds) == [275_000, 25_000])
        #expect(try shares(0, [.init(at: 250, stack: ["a"])]).isEmpty)
    }

    @Test(arguments: [1e10, 1e14, StallReport.maximumMilliseconds.nextDown])
    func timesOfDamagedReportsAreBounded(milliseconds: Double) throws {
        let found = try shares(milliseconds, [.init(at: 1e14, stack: nil, workers: [(["a"], 2), (["b"], 1)])])
        #expect(found.reduce(0) { $0 + $1.microseconds } == StallWeights.maximumMicroseconds)
    }

    @Test func sharesAlwaysAddUp() throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let duration = (Double.random(in: 0.001...5_000, using: &generator) * 1_000).rounded() / 1_000
            let samples = (0..<Int.random(in: 0...8, using: &generator)).map { _ in
                StackFixture.Sample(
                    at: Double.random(in: 0...6_000, using: &generator), stack: Bool.random() ? ["a"] : nil,
                    isValid: Bool.random(), workers: Bool.random() ? [(["b"], 3), (["c"], 4)] : []
                )
            }
            let report = try StackFixture.report(duration, samples.sorted { $0.at < $1.at })
            let sum = StallWeights.shares(of: report).reduce(0) { $0 + $1.microseconds }
            #expect(sum == Int((duration * 1_000).rounded()), "\(duration) ms, \(samples)")
        }
    }
}
