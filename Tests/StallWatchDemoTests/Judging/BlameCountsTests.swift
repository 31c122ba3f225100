import StallWatch
import TestSupport
import Testing

@testable import stallwatch_demo

@Suite struct BlameCountsTests {
    private static let swift = """
        final class Store {
            func save(_ note: String) {
                write(note)
            }
        }

        func save<Note>(
            _ note: Note
        ) {
            write(note)
        }
        """
    private static let c = """
        void demo_wait(int milliseconds);

        static int
        other(void) {
        }
        void demo_wait(int milliseconds) {
            poll(0, 0, milliseconds);
        }
        """

    @Test(arguments: [
        (1, false), (2, true), (3, true), (4, true), (5, false), (6, false), (7, true), (10, true), (11, true),
        (12, false),
    ])
    func lineIsInOneOfTheFunctionsOfThatName(line: Int, isIn: Bool) {
        #expect(SourceFunction.contains(line, of: "Store.save(_:)", inText: Self.swift) == isIn)
        #expect(!SourceFunction.contains(line, of: "Store.load(_:)", inText: Self.swift))
    }

    @Test(arguments: [(1, false), (5, false), (6, true), (7, true), (8, true)])
    func functionInCIsFound(line: Int, isIn: Bool) {
        #expect(SourceFunction.contains(line, of: "demo_wait", inText: Self.c) == isIn)
    }

    @Test func functionsAndLinesAreCounted() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("Store.swift", Array(Self.swift.utf8))
        func outcome(_ function: String?, line: Int?) -> Outcome {
            Outcome(
                scenario: "save", expected: .init(function: "Store.save(_:)"), thresholdMilliseconds: 250,
                injected: [500],
                reports: [
                    ReportedStall(
                        file: "a.json", loop: "main", milliseconds: 500, function: function, sourceFile: file,
                        line: line)
                ])
        }
        let quiet = Outcome(scenario: "idle", expected: nil, thresholdMilliseconds: 250, injected: [], reports: [])
        let counts = BlameCounts([
            outcome("Store.save(_:)", line: 3), outcome("Store.save(_:)", line: 12),
            outcome("Store.save(_:)", line: nil), outcome("write(_:)", line: 3), outcome(nil, line: nil), quiet,
        ])
        #expect(counts.line == "3 of 5 functions, 1 of 5 lines")
    }
}
