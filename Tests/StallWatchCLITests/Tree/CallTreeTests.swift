import StallReports
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

    @Test func `repeats count in a node as in the tree`() throws {
        var tree = CallTree(.topDown)
        var report = try StackFixture.report(500, [.init(at: 250, stack: ["save", "main"])])
        report.repeats = 15
        tree.add(report)
        tree.add(try StackFixture.report(300, [.init(at: 250, stack: ["load", "main"])]))
        #expect(tree.stalls == 17)
        #expect(tree.nodes.map(\.stalls) == [17, 16, 1])
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
                100.0 %      1.30 s > main  4.swift:4
                 38.5 %      500 ms > ├─ parse  5.swift:5
                 38.5 %      500 ms > ├─ save  4.swift:4
                                      │  wait  4.swift:4
                 23.1 %      300 ms > └─ load  4.swift:4
                                         wait  4.swift:4

                2 stalls, 1.30 s, top-down.

                """
        )
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 44 })
    }

    @Test func `of a run of code that is not the app's the ends are shown`() throws {
        var tree = CallTree(.topDown)
        let stack = ["libc!wait", "libc!b", "libc!a", "libc!enter", "save", "libz!y", "libz!x", "main"]
        tree.add(try StackFixture.report(300, [.init(at: 250, stack: stack)]))
        let names = { (folds: Bool) in
            CallTreeText(tree.finished(), minimumPercent: 1, foldsOthers: folds).lines.map(\.name)
        }
        #expect(names(true) == ["main", "x", "y", "save", "enter", "… 2 frames", "wait"])
        #expect(names(false) == ["main", "x", "y", "save", "enter", "a", "b", "wait"])
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

@Suite struct StackTableTests {
    private func names(_ table: StackTable, _ node: Int) -> [String] {
        table.path(of: node).map { table.function(ofFrame: $0).name }
    }

    @Test func equalStacksOfTwoRunsAreMerged() throws {
        var table = StackTable()
        let first = table.add(try StackFixture.report(300, base: "0x1000", [.init(at: 250, stack: ["b", "a"])]))
        let second = table.add(try StackFixture.report(500, base: "0x9000", [.init(at: 250, stack: ["b", "a"])]))
        #expect(first.map(\.node) == second.map(\.node))
        #expect(table.nodes.count == 2 && table.images.count == 1, "\(table)")
        #expect(second.map(\.microseconds) == [500_000])
    }

    @Test func callersAreShared() throws {
        var table = StackTable()
        let nodes = table.add(
            try StackFixture.report(900, [.init(at: 250, stack: ["b", "a"]), .init(at: 600, stack: ["c", "a"])])
        )
        #expect(nodes.map { names(table, $0.node) } == [["b", "a"], ["c", "a"]])
        #expect(table.nodes.count == 3)
    }

    @Test func functionsOfDifferentImagesDiffer() throws {
        var table = StackTable()
        _ = table.add(try StackFixture.report(300, [.init(at: 250, stack: ["wait", "libc!wait"])]))
        #expect(table.functions.map(\.image) == ["libc", "app"])
        #expect(table.functions.map(\.isInApp) == [false, true])
    }

    @Test func inlinedFunctionsHaveADepth() throws {
        var table = StackTable()
        let node = table.add(try StackFixture.report(300, [.init(at: 250, stack: ["^c", "^b", "a"])]))[0].node
        let frames = table.path(of: node).map { table.frames[$0] }
        #expect(frames.map(\.inlineDepth) == [2, 1, 0])
        #expect(Set(frames.map(\.address)).count == 1)
    }

    @Test func missingStacksHaveAName() throws {
        var table = StackTable()
        let report = try StackFixture.report(
            900, [.init(at: 250, stack: nil), .init(at: 600, stack: ["a"], isComplete: false)]
        )
        #expect(table.add(report).map { names(table, $0.node) } == [["[no stack]"], ["a", "[incomplete stack]"]])
    }
}

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
        let found = try shares(0.1, [.init(at: 0.05, stack: nil, workers: [(["busy"], 3), (["idle"], 3), (nil, 1)])])
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

    /// All shares of a report together, each of which may be tiny.
    @Test func `what a damaged report stands for is bounded`() throws {
        var report = try StackFixture.report(1_000, [.init(at: 250, stack: ["a"])])
        report.repeats = 9_007_199_254_740_991
        let whole = Double(1_000_000) * StallWeights.factor(of: report)
        #expect(whole == Double(StallWeights.maximumMicroseconds))
        #expect((-9.6e14).fixed(4) == "-960000000000000.0")
        #expect(9.6e14.fixed(0) == "960000000000000")
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
