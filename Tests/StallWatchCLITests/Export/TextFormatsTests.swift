import Foundation
import Testing

@testable import StallWatchCLI

@Suite struct CollapsedStacksTests {
    @Test func aLineForEachStack() throws {
        let text = String(decoding: CollapsedStacks.data(try .fixture()), as: UTF8.self)
        #expect(
            text == """
                app main;main;parse 500000
                app main;main;save;copy 300250
                app main;main;save;wait 500000
                app other loop;[no stack] 500

                """
        )
    }

    @Test func namesCannotBreakTheFormat() throws {
        var profile = StallProfile()
        profile.add(try StackFixture.report(300, loop: "a;b", [.init(at: 250, stack: ["f;g\nh"])]))
        #expect(String(decoding: CollapsedStacks.data(profile), as: UTF8.self) == "app a:b;f:g h 300000\n")
    }
}

@Suite struct PerfScriptTests {
    @Test func anEventForEachPieceOfStalledTime() throws {
        var profile = StallProfile()
        profile.add(
            try StackFixture.report(25, loop: "a loop", [.init(at: 20, stack: ["^copy", "libc!wait", "main"])]))
        let stack = """
                       1a3 copy (inlined)
                       1a3 wait (/opt/libc)
                       11a main (/opt/app)

            """
        let lines = String(decoding: PerfScript.data(profile), as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        // 25 ms give two or three periods of about 10 ms, which add up to 25 ms.
        #expect(
            lines.filter { $0.hasPrefix("a_loop") }.map(String.init) == [
                "a_loop 7/7 0.000000: 8334 stall:", "a_loop 7/7 0.008334: 8333 stall:",
                "a_loop 7/7 0.016667: 8333 stall:",
            ])
        let names = stack.split(separator: "\n").compactMap { $0.split(separator: " ").dropFirst().first }
        #expect(lines[1..<4].compactMap { $0.split(separator: " ").dropFirst().first } == names)
        #expect(lines[1].hasSuffix(" copy (inlined)"))
        #expect(lines[4].isEmpty)
    }

    @Test(arguments: [1, 3_000])
    func longTimesAndDeepStacksStayWithinBounds(depth: Int) throws {
        var profile = StallProfile()
        let stack = (0..<depth).map { "f\($0)" }
        for _ in 0..<10 { profile.add(try StackFixture.report(3_600_000, [.init(at: 250, stack: stack)])) }
        let text = String(decoding: PerfScript.data(profile), as: UTF8.self)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).count
        #expect((PerfScript.maximumLines / 2...PerfScript.maximumLines + 100).contains(lines))
    }
}

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
