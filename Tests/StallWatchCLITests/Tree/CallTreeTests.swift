import Testing
import TextOutput

@testable import StallWatchCLI

@Suite struct CallTreeTests {
    private func tree(_ direction: CallTree.Direction, runtimeFrames: Bool = true) throws -> CallTree {
        var tree = CallTree(direction, leavesOutRuntimeFrames: !runtimeFrames)
        tree.add(
            try StackFixture.report(
                1_000,
                [
                    .init(at: 250, stack: ["libc!wait", "save", "~thunk", "main"]),
                    .init(at: 750, stack: ["parse", "main"]),
                ]
            )
        )
        tree.add(try StackFixture.report(300, [.init(at: 250, stack: ["libc!wait", "load", "main"])]))
        return tree.finished()
    }

    @Test func topDown() throws {
        let lines = CallTreeText(try self.tree(.topDown), minimumPercent: 0).lines
        #expect(
            lines.map { $0.indentation + $0.name } == [
                "main", "├─ parse", "├─ thunk", "│  save", "│  wait", "└─ load", "   wait",
            ])
        #expect(lines.map(\.microseconds) == [1_300_000, 500_000, 500_000, nil, nil, 300_000, nil])
    }

    @Test func bottomUp() throws {
        let tree = try self.tree(.bottomUp, runtimeFrames: false)
        let lines = CallTreeText(tree, minimumPercent: 0).lines
        #expect(
            lines.map { $0.indentation + $0.name } == [
                "wait", "├─ save", "│  main", "└─ load", "   main", "parse", "main",
            ])
        #expect(tree.roots.map { tree.nodes[$0].total } == [800_000, 500_000])
        #expect(tree.roots.map { tree.nodes[$0].stalls } == [2, 1])
    }

    @Test func functionsBelowTheMinimumAreLeftOut() throws {
        let text = CallTreeText(try self.tree(.bottomUp, runtimeFrames: false), minimumPercent: 50)
        #expect(text.lines.map(\.name) == ["wait"])
        #expect(text.omittedMicroseconds == 500_000)
    }

    @Test func aStallWithSeveralSamplesCountsOnce() throws {
        var tree = CallTree(.topDown)
        tree.add(try StackFixture.report(900, [.init(at: 250, stack: ["a"]), .init(at: 600, stack: ["b", "a"])]))
        #expect(tree.nodes.map(\.stalls) == [1, 1])
        #expect(tree.nodes.map(\.total) == [900_000, 475_000])
        #expect(tree.nodes.map(\.own) == [425_000, 475_000])
    }

    @Test func recursionIsOneNode() throws {
        var tree = CallTree(.topDown)
        tree.add(try StackFixture.report(300, [.init(at: 250, stack: ["walk", "walk", "walk", "main"])]))
        #expect(tree.nodes.map { tree.table.functions[$0.function].name } == ["main", "walk"])
    }

    @Test func aStackOfRuntimeFramesIsStillShown() throws {
        var tree = CallTree(.topDown, leavesOutRuntimeFrames: true)
        tree.add(try StackFixture.report(300, [.init(at: 250, stack: ["~loop", "~start"])]))
        #expect(tree.nodes.map(\.total) == [300_000, 300_000])
    }

    @Test func veryDeepStacksAreShown() throws {
        var tree = CallTree(.topDown)
        let stack = (0..<20_000).map { "f\($0)" }
        tree.add(try StackFixture.report(300, [.init(at: 250, stack: stack)]))
        #expect(CallTreeText(tree.finished(), minimumPercent: 0).lines.count == 20_000)
        #expect(TreeReport(tree.finished(), minimumPercent: 0).nodes.last?.depth == 19_999)
    }

    @Test func textShowsPlaces() throws {
        let text = TreeCommand.text(
            try self.tree(.topDown, runtimeFrames: false), minimumPercent: 1, for: Terminal(width: 44))
        #expect(
            text == """
                100.0 %      1.30 s  main  4.swift:4
                 38.5 %      500 ms  ├─ parse  5.swift:5
                 38.5 %      500 ms  ├─ save  4.swift:4
                                     │  wait  4.swift:4
                 23.1 %      300 ms  └─ load  4.swift:4
                                        wait  4.swift:4

                2 stalls, 1.30 s, top-down.

                """
        )
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 44 })
    }

    @Test func json() throws {
        let report = TreeReport(try self.tree(.topDown, runtimeFrames: false), minimumPercent: 30)
        #expect(report.nodes.map(\.function) == ["main", "parse", "save", "wait"])
        #expect(report.nodes.map(\.parent) == [nil, 0, 0, 2])
        #expect(report.nodes.map(\.totalMilliseconds) == [1_300, 500, 500, 500])
        #expect(report.nodes.map(\.selfMilliseconds) == [0, 500, 0, 500])
        #expect(report.totalMilliseconds == 1_300)
    }
}
