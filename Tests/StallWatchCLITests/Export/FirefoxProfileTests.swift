import Foundation
import Testing

@testable import StallWatchCLI

@Suite struct FirefoxProfileTests {
    private struct File: Decodable {
        struct Meta: Decodable { var startTime: Int }
        struct Thread: Decodable {
            struct Samples: Decodable {
                var time: [Double]
                var weight: [Double]
                var stack: [Int]
            }
            struct Markers: Decodable {
                var startTime: [Double]
                var endTime: [Double]
            }
            var name: String
            var isMainThread: Bool
            var samples: Samples
            var markers: Markers
        }
        var meta: Meta
        var threads: [Thread]
    }

    @Test func aThreadForEachLoop() throws {
        let bytes = FirefoxProfile.data(try .fixture(), product: "StallWatch")
        let file = try JSONDecoder().decode(File.self, from: Data(bytes))
        #expect(file.meta.startTime == 1_795_248_000_000)
        #expect(file.threads.map(\.name) == ["main", "other loop"])
        #expect(file.threads[0].isMainThread)
        #expect(file.threads[0].samples.time == [0, 1_000, 1_500])
        #expect(file.threads[0].samples.weight == [300.25, 500, 500])
        #expect(file.threads[0].markers.startTime == [0, 1_000])
        #expect(file.threads[0].markers.endTime == [300.25, 2_000])
    }

    @Test func samplesOfOverlappingStallsAreInOrder() throws {
        var profile = StallProfile()
        for start in ["00.000000", "00.100000"] {
            profile.add(
                try StackFixture.report(
                    900, startedAt: "2026-11-21T08:00:\(start)Z",
                    [.init(at: 250, stack: ["a"]), .init(at: 600, stack: ["b"])]
                )
            )
        }
        let file = try JSONDecoder().decode(
            File.self, from: Data(FirefoxProfile.data(profile, product: "StallWatch")))
        #expect(file.threads[0].samples.time == [0, 100, 425, 525])
    }
}
