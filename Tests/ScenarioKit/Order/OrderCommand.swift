import ArgumentParser
import Foundation

/// Prints the steps of the run loop's turns, as they happen with the CoreFoundation at hand.
struct OrderCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch-scenarios order",
        abstract: "Prints what the main run loop does for each kind of work, in its order.",
        discussion: """
            The table is part of docs/RunLoop.md, and a test compares the two: it fails when CoreFoundation changes the order.
            """
    )

    @Flag(help: "Print the time from the end of the wait to each callout, which differs from run to run.")
    var delays = false

    @Option(help: ArgumentHelp("Replace the table of this page, such as docs/RunLoop.md.", valueName: "file"))
    var page: String?

    /// The lines around the table in a page.
    static let (begin, end) = ("<!-- begin of the table -->\n", "<!-- end of the table -->")

    func run() throws {
        let cases = OrderCase.all.map { ($0.what, $0.steps()) }
        let table = "| the loop has | its steps |\n| --- | --- |\n" + cases.map(Self.row).joined()
        if let page {
            try Self.replaceTable(of: page, by: table)
        } else {
            try StandardOutput.write(table)
        }
        if delays { try StandardOutput.write("\n" + cases.map(Self.delays).joined()) }
    }

    private static func row(_ what: String, _ steps: [LoopOrder.Step]) -> String {
        let names = steps.map { $0.isCallout ? "**\($0.name)**" : $0.name }
        return "| \(what) | \(names.joined(separator: " → ")) |\n"
    }

    /// The time from the end of each wait to the callouts that follow it.
    private static func delays(_ what: String, _ steps: [LoopOrder.Step]) -> String {
        var wake: UInt64?
        var lines = ""
        for step in steps {
            if step.name == "AfterWaiting" { wake = step.time }
            if step.name == "BeforeWaiting" { wake = nil }
            guard step.isCallout, let wake else { continue }
            lines += "\(what): the \(step.name) \(Double(step.time - wake) / 1_000) us after the wait\n"
        }
        return lines
    }

    private static func replaceTable(of page: String, by table: String) throws {
        let text = try String(contentsOfFile: page, encoding: .utf8)
        guard let first = text.range(of: begin), let last = text.range(of: end), first.upperBound <= last.lowerBound
        else { throw ValidationError("\(page) lacks the lines around the table: \(begin)\(end)") }
        let (before, after) = (String(text[..<first.upperBound]), String(text[last.lowerBound...]))
        try (before + table + after).write(toFile: page, atomically: true, encoding: .utf8)
    }
}
