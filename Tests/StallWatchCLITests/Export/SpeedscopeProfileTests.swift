import Foundation
import Testing

@testable import StallWatchCLI

@Suite struct SpeedscopeProfileTests {
    private struct File: Decodable {
        struct Profile: Decodable {
            var name: String
            var endValue: Int
            var samples: [[Int]]
            var weights: [Int]
        }
        struct Shared: Decodable { var frames: [Frame] }
        struct Frame: Decodable { var name: String }
        var shared: Shared
        var profiles: [Profile]
    }

    @Test func aProfileForEachLoopInTheOrderOfTime() throws {
        let bytes = SpeedscopeProfile.data(try .fixture(), exporter: "test")
        let file = try JSONDecoder().decode(File.self, from: Data(bytes))
        let names = file.shared.frames.map(\.name)
        #expect(file.profiles.map(\.name) == ["app (7) main", "app (7) other loop"])
        #expect(file.profiles[0].weights == [300_250, 500_000, 500_000])
        #expect(file.profiles[0].endValue == 1_300_250)
        #expect(
            file.profiles[0].samples.map { $0.map { names[$0] } } == [
                ["main", "save", "copy"], ["main", "save", "wait"], ["main", "parse"],
            ]
        )
        #expect(file.profiles[1].samples.map { $0.map { names[$0] } } == [["[no stack]"]])
    }
}
