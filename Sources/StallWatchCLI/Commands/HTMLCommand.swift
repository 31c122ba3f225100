import ArgumentParser

/// Writes an HTML page.
struct HTMLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "html",
        abstract: "Write a page with the timeline, the groups, a flame graph and every stall.",
        discussion: """
            The page is one file that loads nothing else: it can be mailed, attached to a ticket and opened years later. It contains \
            the reports' data, including names of functions and files. In the page, ? shows the keys.

            Examples:
              stallwatch html stalls -o stalls.html
              stallwatch html stalls --since 24h --metadata version=1.4.2 -o today.html
            """
    )

    @OptionGroup var selection: ReportSelection

    @Option(name: .shortAndLong, help: ArgumentHelp("The file to write, or - for standard output.", valueName: "file"))
    var output: String

    func run() throws {
        let destination = try Destination(output, isBinary: false)
        var data = PageData()
        try selection.read().forEach { report, _ in data.add(report) }
        guard data.count > 0 else {
            throw CommandFailure(.noInput, "No report matches, so there is nothing to show.")
        }
        try destination.write(Page.html(data.json()))
    }
}
