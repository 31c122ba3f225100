import Foundation
import StallReports
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
                var name: [Int]
                var startTime: [Double]
                var endTime: [Double]
            }
            var name: String
            var isMainThread: Bool
            var samples: Samples
            var markers: Markers
        }
        struct Shared: Decodable { var stringArray: [String] }
        var meta: Meta
        var shared: Shared
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

    @Test func `turns are markers, also of a loop without stalls`() throws {
        func history(_ label: String, _ turns: [(at: Double, duration: Double)]) -> StallReport.LoopHistory {
            StallReport.LoopHistory(
                label: label, kind: .init(rawValue: "runLoop"),
                turns: turns.map {
                    .init(atMilliseconds: $0.at, durationMilliseconds: $0.duration, waitedMilliseconds: 0)
                })
        }
        var report = try StackFixture.report(
            300, startedAt: "2026-11-21T08:00:01.000000Z", [.init(at: 250, stack: ["save"])])
        report.history = StallReport.History(
            windowMilliseconds: 5_000, loops: [history(report.loop.label, [(-100, 40)]), history("db", [(10, 500)])])
        var profile = StallProfile()
        profile.add(report)
        let file = try JSONDecoder().decode(File.self, from: Data(FirefoxProfile.data(profile, product: "StallWatch")))
        #expect(file.threads.map(\.name) == [report.loop.label, "db"])
        // The profile begins with the first turn.
        #expect(file.threads[0].markers.startTime == [100, 0])
        #expect(file.threads[0].markers.endTime == [400, 40])
        #expect(file.threads[0].markers.name.map { file.shared.stringArray[$0] } == ["Stall", "Turn"])
        #expect(file.threads[0].samples.time == [100])
        #expect(file.threads[1].markers.startTime == [110])
        #expect(file.threads[1].markers.endTime == [610])
        #expect(file.threads[1].samples.time == [])
    }
}
