import Foundation
import Testing
import TestSupport

/// The steps of the run loop with the CoreFoundation of this machine, and the page that shows them.
@Suite struct RunLoopOrderTests {
    private static func order(_ arguments: [String] = []) throws -> String {
        let program = try Command(program: Command.product("stallwatch-scenarios"), arguments: ["order"] + arguments)
        let output = try program.run()
        #expect(output.status == 0, "\(output.text)")
        return output.output
    }

    @Test func `the page shows the order that the loop has`() throws {
        let path = Repository.root.appendingPathComponent("docs/RunLoop.md").path
        let page = try String(contentsOfFile: path, encoding: .utf8)
        let (begin, end) = ("<!-- begin of the table -->\n", "<!-- end of the table -->")
        let first = try #require(page.range(of: begin)?.upperBound)
        let last = try #require(page.range(of: end)?.lowerBound)
        let shown = page[first..<last].split(separator: "\n")
        let steps = try Self.order().split(separator: "\n")
        for (step, line) in zip(steps, shown) { #expect(step == line) }
        #expect(steps.count == shown.count && steps.count > 15)
    }

    @Test func `the delay from the wake-up to each callout is printed on demand`() throws {
        let lines = try Self.order(["--delays"]).split(separator: "\n").filter { $0.hasSuffix(" us after the wait") }
        for callout in ["a timer: the timer ", "a source1: the source1 ", "blocks of the main queue: the main queue "] {
            #expect(lines.contains { $0.contains(callout) }, "\(callout)")
        }
    }

    /// The snippet's own program counts them.
    @Test func `the page's resident threads end, and idle work is done`() throws {
        let output = try Command(program: Command.product("RunLoops"), arguments: [], timeout: 300).run()
        #expect(output.status == 0, "\(output.text)")
        #expect(output.output == "0 of 500 threads and 0 of 20 pieces are left\n", "\(output.text)")
    }

    @Test func `the table of a page is replaced`() throws {
        let directory = try TemporaryDirectory()
        let page = try directory.write(
            "page.md", "Before.\n<!-- begin of the table -->\nold\n<!-- end of the table -->\nAfter.\n")
        #expect(try Self.order(["--page", page]) == "")
        let text = try String(contentsOfFile: page, encoding: .utf8)
        #expect(text.hasPrefix("Before.\n<!-- begin of the table -->\n| the loop has | its steps |\n"))
        #expect(text.hasSuffix("|\n<!-- end of the table -->\nAfter.\n") && !text.contains("old"))
    }
}
