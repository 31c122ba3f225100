import Testing

@testable import StallWatchCLI

@Suite struct StackTableTests {
    private func names(_ table: StackTable, _ node: Int) -> [String] {
        table.path(of: node).map { table.function(ofFrame: $0).name }
    }

    @Test func equalStacksOfTwoRunsAreMerged() throws {
        var table = StackTable()
        let first = table.add(try StackFixture.report(300, base: "0x1000", [.init(at: 250, stack: ["b", "a"])]))
        let second = table.add(try StackFixture.report(500, base: "0x9000", [.init(at: 250, stack: ["b", "a"])]))
        #expect(first.map(\.node) == second.map(\.node))
        #expect(table.nodes.count == 2)
        #expect(table.images.count == 1)
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
